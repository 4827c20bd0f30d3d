import t from 'tap'
import { compareBooks } from '../bench/books.js'
import { Histogram } from '../bench/load/histogram.js'
import { PayloadReader, Payloads } from '../bench/load/payload.js'
import { HELP, parseOptions } from '../bench/options.js'
import { parseRestartOptions } from '../bench/restarts.js'
import { run, script } from './bench-runs.js'

t.test('a wrong command line is refused with one clear line', async t => {
  /** @type {[string, RegExp][]} */
  const cases = [
    ['fam', /no scenario "fam"; there are memory, fan, one2one, big, poll/],
    ['fan --conns=many', /--conns is a whole number from 1, not "many"/],
    ['fan --size=10', /--size is a whole number from 64/],
    ['fan --server=nginx', /a server is one of halley, uws, ws, embedded, not "nginx"/],
    ['fan --nodes=2', /--nodes and --redis want --engine redis/],
    ['channels --against=uws', /channels is for Halley only, not for uws/],
    ['fan --speed=9', /Unknown option '--speed'/],
  ]
  for (const [args, message] of cases) t.throws(() => parseOptions(args.split(' ')), { message })
  t.throws(() => parseRestartOptions(['--kill=all']), { message: /--kill is redis or node, not "all"/ })
  await t.rejects(run(process.execPath, [script, 'fam']), { code: 2, stderr: /^bench: no scenario "fam"/ })
})

t.test('--help names every scenario', async t => {
  t.equal(parseOptions(['--help']), null)
  t.match(HELP, /memory .*\n.*fan .*\n.*one2one .*\n.*big .*\n.*poll .*\n.*latency .*\n.*channels /)
})

t.test('a histogram knows every value to within 1.6 %, and its maximum exactly', async t => {
  const wrong = []
  for (let value = 1; value < 2 ** 37; value = Math.ceil(value * 1.37)) {
    const histogram = new Histogram()
    histogram.add(value)
    histogram.add(2 ** 37)
    const seen = histogram.percentile(50)
    const maximum = histogram.percentile(100)
    if (seen < value || seen > value * (1 + 1 / 64) || maximum !== 2 ** 37)
      wrong.push({ value, seen, maximum })
  }
  t.same(wrong, [])
})

t.test('merged histograms give the percentiles of all values', async t => {
  const all = new Histogram()
  const parts = [new Histogram(), new Histogram()]
  for (let value = 1; value <= 1000; value++) {
    all.add(value)
    parts[value < 900 ? 0 : 1].add(value)
  }
  parts[0].merge(new Histogram(structuredClone(parts[1].state)))
  for (const percent of [1, 50, 89, 90, 99, 100])
    t.equal(parts[0].percentile(percent), all.percentile(percent), `${percent}`)
  t.equal(parts[0].count, 1000)
})

t.test('a reader finds each payload in whatever envelope, and sees which are damaged', async t => {
  const payloads = new Payloads(100)
  const [first, second] = [payloads.make(1_234_567_890, 41), payloads.make(1_234_567_999, 42)]
  t.equal(first.length, 100)
  t.equal(JSON.parse(first).s, 41)
  const bytes = Buffer.from(
    `{"push":{"channel":"t","pub":{"data":${first}}}}\n{"push":{"pub":{"data":${second}}}}`,
  )
  const reader = new PayloadReader(100)
  const next = reader.next(bytes, 0, bytes.length)
  t.match(reader, { micros: 1_234_567_890, sequence: 41, whole: true })
  t.ok(reader.next(bytes, next, bytes.length) > next)
  t.match(reader, { micros: 1_234_567_999, sequence: 42, whole: true })
  t.equal(reader.next(bytes, bytes.length - 3, bytes.length), -1)
  const damaged = Buffer.from(first.replace('xyz', 'xy'))
  t.ok(reader.next(damaged, 0, damaged.length) > 0)
  t.match(reader, { sequence: 41, whole: false })
})

t.test('the books tell of what is missing, repeated and out of order', async t => {
  const positions = Object.entries({ 'e:1': 'a', 'e:2': 'b', 'e:3': 'c' })
  const load = {
    acks: 3,
    acknowledged: new Map([['c', new Map(positions)]]),
    errors: new Map([[100, 2]]),
    unanswered: 1,
    faults: [],
  }
  const got = new Map(Object.entries({ 'e:1': 'a', 'e:2': 'x', 'e:4': 'd' }))
  const client = {
    faults: ['c: 1 (a) after 2 of e', 'c: a twice', 'c: error 108'],
    returns: 1,
    tracks: new Map([['c', { channel: 'c', got, told: 0 }]]),
  }
  const books = compareBooks(/** @type {any} */ (load), [/** @type {any} */ (client)])
  t.match(books.figures, {
    acknowledged: 3,
    refused: 2,
    expected: 3,
    delivered: 1,
    delivered_unacknowledged: 2,
    missing: 1,
    repeated: 1,
    out_of_order: 1,
    other_faults: 2,
  })
  t.equal(books.said, 6)
  t.equal(books.faults.length, 5)
})
