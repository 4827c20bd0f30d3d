import t from 'tap'
import { bar, chart, legend, sparkline, stackedBar } from '../../dashboard/chart.js'
import { lineWidth, plain } from '../../dashboard/terminal/line.js'

/**
 * @typedef {import('../../dashboard/chart.js').ChartOptions} ChartOptions
 * @typedef {import('../../dashboard/chart.js').Series} Series
 */

/** @param {(number | null)[]} values @param {string} [label] @param {string} [style] @returns {Series} */
const of = (values, label, style = 'series1') => ({ values, style, label })

/** @param {ChartOptions} options */
const picture = options => chart(options).map(plain)

/** @param {Partial<ChartOptions> & {values: (number | null)[]}} options @returns {string[]} labels from the bottom */
const labels = ({ values, ...options }) =>
  picture({ series: [of(values)], width: 40, height: 10, ...options })
    .filter(line => /[┤│]/.test(line))
    .map(line => line.split(/[┤│]/)[0].trim())
    .filter(label => label !== '')
    .reverse()

/** From 0 to 590 in a minute. */
const rise = Array.from({ length: 60 }, (_, second) => second * 10)

t.test('draws a braille line with labels for values and time', async t => {
  t.strictSame(picture({ series: [of(rise)], width: 40, height: 9 }), [
    '600┤                                ⣀⠤⠔⠊',
    '   │                          ⢀⣀⠤⠒⠉⠉    ',
    '400┤                     ⣀⡠⠔⠒⠊⠁         ',
    '   │                ⣀⠤⠒⠒⠉               ',
    '200┤          ⢀⡠⠤⠔⠊⠉                    ',
    '   │     ⣀⠤⠤⠒⠉⠁                         ',
    '  0┤⢀⡠⠔⠒⠉                               ',
    '   └┴────────────────┴─────────────────┴',
    '    1m ago          30s              now',
  ])
})

t.test('without Unicode it draws only ASCII', async t => {
  t.strictSame(picture({ series: [of(rise)], width: 40, height: 9, unicode: false }), [
    '600+                                 ***',
    '   |                           ******   ',
    '400+                     ******         ',
    '   |               ******               ',
    '200+         ******                     ',
    '   |   ******                           ',
    '  0+***                                 ',
    '   ++----------------+-----------------+',
    '    1m ago          30s              now',
  ])
})

t.test('unknown values are gaps, and the time before the first value is empty', async t => {
  const values = [...Array(20).fill(5), ...Array(20).fill(null), ...Array(20).fill(10)]
  t.strictSame(picture({ series: [of(values)], width: 36, height: 6 }), [
    '10┤                      ⠈⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉',
    '  │                                 ',
    ' 5┤⠐⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒                      ',
    '  │                                 ',
    ' 0┤                                 ',
    '   1m ago         30s            now',
  ])
  t.strictSame(picture({ series: [of([4, 4, 4, 4])], width: 36, height: 6, span: 60 }), [
    '4┤                                ⠉⠉',
    ' │                                  ',
    '2┤                                  ',
    ' │                                  ',
    '0┤                                  ',
    '  1m ago         30s             now',
  ])
})

t.test('a logarithmic scale shows both single peaks and small values', async t => {
  const max = rise.map((_, second) => (second === 30 ? 900 : 12))
  const p90 = rise.map(() => 11)
  const lines = chart({
    series: [of(max, 'max'), of(p90, 'p90', 'series2')],
    width: 40,
    height: 12,
    scale: 'log',
    format: value => `${value} ms`,
  })
  t.strictSame(lines.map(plain), [
    '        ━ max  ━ p90                    ',
    '1000 ms┤                ⢰               ',
    '       │                ⢸               ',
    '       │                ⣼               ',
    '       │                ⣿               ',
    ' 100 ms┤                ⡟⡄              ',
    '       │                ⡇⡇              ',
    '       │               ⢠⠃⡇              ',
    '       │               ⢸ ⡇              ',
    '  10 ms┤⠠⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠼⠤⠧⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤',
    '       └┴──────────────┴───────────────┴',
    '        1m ago        30s            now',
  ])
  t.strictSame(lines[9].slice(2), [[plain(lines[9]).slice(8), 'series2']], 'the later one has the colour')
  t.strictSame(
    lines[1].find(([, style]) => style.startsWith('series')),
    ['⢰', 'series1'],
  )
})

t.test('a logarithmic scale has labels at decades, and in between if they fit', async t => {
  const log = (/** @type {number[]} */ ...values) => labels({ values, height: 8, scale: 'log' })
  t.strictSame(log(1, 100_000), ['1', '100', '10k'])
  t.strictSame(log(1, 1000), ['1', '10', '100', '1,000'])
  t.strictSame(log(0.1, 500), ['0.1', '1', '10', '100'])
  t.strictSame(log(12, 80), ['10', '20', '50', '100'])
  t.strictSame(log(11, 12), ['10', '20', '50', '100'], 'at least a decade')
  t.strictSame(log(0, 0), ['1', '2', '5', '10'], 'only zeroes')
  t.strictSame(log(0.002, 0.015), ['0.001', '0.002', '0.005', '0.01', '0.02'])
})

t.test('labels are round', async t => {
  t.strictSame(labels({ values: [1] }), ['0', '1'], 'counts have no fractions')
  t.strictSame(labels({ values: [0.5] }), ['0', '0.2', '0.4', '0.6'])
  t.strictSame(labels({ values: [43_210] }), ['0', '20k', '40k', '60k'])
  t.strictSame(labels({ values: [1_200_000] }), ['0', '500k', '1M', '1.5M'])
  t.strictSame(labels({ values: [-5, 5] }), ['-5', '0', '5'])
  const binary = { binary: true, format: (/** @type {number} */ value) => `${value / 2 ** 20} MiB` }
  t.strictSame(labels({ values: [700 * 2 ** 20], ...binary }), ['0 MiB', '256 MiB', '512 MiB', '768 MiB'])
  t.strictSame(labels({ values: [3.5 * 2 ** 30], ...binary }), ['0 MiB', '2048 MiB', '4096 MiB'])
  t.strictSame(labels({ values: [] }), ['0', '1'])
})

t.test('draws stacked areas', async t => {
  const series = [of([2, 2, 2, 2, 2, 2], 'a'), of([1, 2, 3, 4, 5, 6], 'b', 'series2')]
  const options = { series, width: 30, height: 10, stacked: true }
  const lines = chart(options)
  t.strictSame(lines.map(plain), [
    '   █ a  █ b                   ',
    '10┤                           ',
    '  │                       ▁▂▃▅',
    '  │                 ▂▃▄▅▆▇████',
    ' 5┤          ▁▂▃▄▅▇███████████',
    '  │    ▁▂▄▅▆██████████████████',
    '  │    ███████████████████████',
    ' 0┤    ███████████████████████',
    '  └────┴─────────────────────┴',
    '    5s ago                 now',
  ])
  t.equal(lines[7].at(-1)?.[1], 'series1')
  t.equal(lines[6].at(-1)?.[1], 'series2')
  t.strictSame(picture({ ...options, unicode: false }), [
    '   # a  = b                   ',
    '10+                           ',
    '  |                          =',
    '  |                   ========',
    ' 5+             ==============',
    '  |      =====================',
    '  |    =======================',
    ' 0+    #######################',
    '  +----+---------------------+',
    '    5s ago                 now',
  ])
  t.match(picture({ ...options, colors: false })[6], /▒{20}$/, 'without colours they differ by their pattern')
})

t.test('a value missing in one area counts as 0, in all areas as a gap', async t => {
  const series = [of([4, null, 4, null, 4]), of([4, 4, 4, null, 4], undefined, 'series2')]
  t.strictSame(picture({ series, width: 8, height: 3, stacked: true }), ['10┤▃ ▃ ▃', '  │█▂█ █', ' 0┤███ █'])
})

t.test('a chart has the requested size', async t => {
  const wrong = []
  for (const unicode of [true, false]) {
    for (const stacked of [true, false]) {
      for (let columns = 0; columns < 30; columns++) {
        for (let height = 0; height < 12; height++) {
          const series = [of([1, 20, null, 4], 'label'), of([5], 'of another', 'series2')]
          const lines = chart({ series, width: columns, height, unicode, stacked })
          if (lines.length === height && lines.every(line => lineWidth(line) === columns)) continue
          wrong.push(`${columns} x ${height}: ${lines.map(lineWidth)}`)
        }
      }
    }
  }
  t.same(wrong, [])
})

t.test('a scrolling chart keeps the values of its columns', async t => {
  const values = Array.from({ length: 400 }, (_, i) => ((i * 7919) % 101) + 1)
  /** @param {number} last */
  const at = last =>
    picture({ series: [of(values.slice(last - 299, last + 1))], width: 54, height: 5, last })
      .slice(0, 4)
      .map(line => line.slice(4))
  // 300 values in 50 columns of two dots: it scrolls by a column in six seconds. The left column is incomplete.
  const before = at(329)
  const after = at(335)
  t.strictSame(
    after.map(line => line.slice(1, -1)),
    before.map(line => line.slice(2)),
  )
  t.strictSame(
    at(330).map(line => line.slice(1, -2)),
    at(331).map(line => line.slice(1, -2)),
    'no movement in between',
  )
})

t.test('the legend names the series', async t => {
  t.strictSame(legend([of([], 'a'), of([]), of([], 'b', 'bad')], {}), [
    ['━', 'series1'],
    [' a', 'label'],
    ['  ', ''],
    ['━', 'bad'],
    [' b', 'label'],
  ])
  t.equal(plain(legend([of([], 'a'), of([], 'b')], { unicode: false })), '* a  + b')
})

t.test('a sparkline shows every value above 0', async t => {
  t.equal(sparkline([0, 1, 2, 3, 4, 5, 6, 7], 8, true, 7), '▁▂▃▄▅▆▇█')
  t.equal(sparkline([0, 1, 2, 3, 4, 5], 6, false, 5), '_.-=*#')
  t.equal(sparkline([9, 1, 2], 2, true, 2), '▅█', 'the last ones')
  t.equal(sparkline([1, null, 1], 5, true, 1), '  █ █')
  t.equal(sparkline([0, 0], 2, true, 1), '▁▁')
  t.equal(sparkline([1], 1, true, 1000), '▂', 'every value above 0 is visible')
  t.equal(sparkline([50, 2000], 2, true, 100), '▅█')
  t.equal(sparkline([], 3, true, 1), '   ')
})

t.test('a bar is divided by share', async t => {
  t.strictSame(bar(0.5, 4, true, 'good'), [['██', 'good'], ['░░', 'dim']]) // biome-ignore format: spans
  t.equal(plain(bar(0.53, 10, true, '')), '█████▎░░░░')
  t.equal(plain(bar(0.53, 10, false, '')), '#####.....')
  t.strictSame(bar(7, 3, true, ''), [['███', '']])
  t.strictSame(bar(Number.NaN, 3, true, ''), [['░░░', 'dim']])
  t.strictSame(bar(0.5, 0, true, ''), [])
  const parts = [0.333, 0.333, 0.333].map((share, i) => ({ share, style: `series${i + 1}` }))
  t.strictSame(stackedBar(parts, 10, true), [['███', 'series1'], ['████', 'series2'], ['███', 'series3']]) // biome-ignore format: spans
  t.equal(plain(stackedBar(parts, 10, false)), '###====:::')
  t.equal(plain(stackedBar(parts.slice(1), 10, true, false)), '███▒▒▒▒   ')
  t.equal(plain(stackedBar([{ share: 3, style: '' }, ...parts], 4, true)), '████')
})
