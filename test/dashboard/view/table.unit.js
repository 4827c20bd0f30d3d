import t from 'tap'
import { lineWidth, plain } from '../../../dashboard/terminal/line.js'
import { Theme } from '../../../dashboard/terminal/theme.js'
import { choose, table } from '../../../dashboard/view/table.js'

/** @typedef {import('../../../dashboard/terminal/line.js').Line} Line */

const COLUMNS = [
  { name: 'id', title: 'id', group: '', width: 3, rank: 0, align: /** @type {const} */ ('left') },
  { name: 'in', title: 'in', group: 'messages', width: 6, rank: 1 },
  { name: 'out', title: 'out', group: 'messages', width: 6, rank: 2 },
]

/**
 * @param {object} [options]
 * @param {number} [options.selected]
 * @param {boolean} [options.tail]
 * @returns {Line[]} of 20 rows, of which five are shown on 40 columns
 */
function drawn({ selected = -1, tail = false } = {}) {
  const rows = Array.from({ length: 20 }, (_, id) => id)
  return table(
    {
      title: 'rows',
      chosen: choose(COLUMNS, 40),
      sort: 'in',
      rows,
      isSelected: id => id === selected,
      absent: () => null,
      cell: ({ name }, id) =>
        name === 'id' ? [[`${id}`, 'value']] : [name === 'in' ? ['12', 'bad'] : ['34', 'good']],
      total: ({ name }) => [[name === 'id' ? 'all' : '', 'value']],
      tail: tail ? { title: 'trend', width: 8, line: () => [['▁▂▃', 'series4']] } : null,
    },
    40,
    8,
  )
}

t.test('the highlight of the selected row spans the whole width', async t => {
  for (const tail of [false, true]) {
    const lines = drawn({ selected: 10, tail })
    const selected = lines.filter(line => line.some(([, style]) => /selected/.test(style)))
    t.equal(selected.length, 1)
    t.match(plain(selected[0]), /^▸10 /)
    t.equal(lineWidth(selected[0]), 40)
    for (const colors of /** @type {const} */ ([0, 16, 256])) {
      const theme = new Theme(colors)
      const attributes = selected[0].map(([, style]) => theme.attributes(style))
      t.ok(
        attributes.every(value => ((value >> 18) & 8) === 8),
        'reversed everywhere',
      )
      t.equal(new Set(attributes.map(value => value & 0x3ffff)).size, 1, 'in the same colours')
    }
    t.ok(
      selected[0].some(([text, style]) => text === '12' && style === 'header selected'),
      'bad figures are bold',
    )
  }
})

t.test(
  'the table scrolls to keep the selected row in the middle; the title has the visible range',
  async t => {
    const [groups, titles, first] = drawn().map(plain)
    t.match(groups, /^─ rows, 1 to 5 ─+$/, 'no room for the name of the group')
    t.match(titles, /^ id +in +out/)
    t.match(first, /^ 0 /)
    t.match(drawn({ selected: 10 }).map(plain)[0], /9 to 13/)
    t.match(drawn({ selected: 19 }).map(plain)[0], /16 to 20/)
    t.match(plain(drawn({ selected: 19 })[6]), /^▸19 /)
    t.match(plain(drawn()[7]), /^ all/)
  },
)

t.test('columns with the highest rank are dropped first', async t => {
  const names = (/** @type {number} */ width) => choose(COLUMNS, width).list.map(({ name }) => name)
  t.same(names(18), ['id', 'in', 'out'])
  t.same(names(17), ['id', 'in'])
  t.same(names(10), ['id'])
  t.equal(choose(COLUMNS, 18).gap, 1)
  t.equal(choose(COLUMNS, 40).gap, 3)
})
