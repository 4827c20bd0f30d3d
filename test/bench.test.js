import t from 'tap'
import { Histogram } from '../bench/load/histogram.js'
import { PayloadReader, Payloads } from '../bench/load/payload.js'
import { bench, countsAll, NO_FAULT, run, script, skip } from './bench-runs.js'

// Each run takes what it measures, a second of warm-up, and a server's start and end.
t.setTimeout(120_000)
// Most of it is waiting, and none of the figures matters here.
t.jobs = 6

countsAll(t, [
  ['fan --channels=10 --rate=200 --workers=2', 5],
  ['fan --channels=10 --rate=200 --server=ws', 5],
  ['one2one --rate=500', 1],
  ['big --rate=30 --transport=protobuf --loaders=3', 50],
  ['big --rate=30 --transport=uni_sse', 50],
  ['big --rate=30 --transport=uni_http_stream', 50],
])

t.test('memory: every client connects, and costs something', { skip }, async t => {
  const [result] = await bench('memory')
  t.match(result, { connections: 50, failed: 0, closed: 0 })
  t.ok(result.base_mb > 1)
  t.ok(result.connect_cpu_us > 0)
})

t.test('poll: every message is in the answer to each poll of its channel', { skip }, async t => {
  const [result, control] = await bench('poll --channels=5 --against=ws --runs=1')
  for (const { connections, faults, rounds, answers, received, expected, cpu_us_per_round } of [
    result,
    control,
  ]) {
    t.same([connections, faults], [50, 0])
    t.equal(answers, rounds * 10)
    t.equal(received, expected)
    t.ok(cpu_us_per_round > 0)
  }
})

t.test('a control runs in turn with the gateway, medians and ratios follow', { skip }, async t => {
  const lines = await bench('fan --against=uws --runs=1 --rate=100')
  t.strictSame(
    lines.map(({ server, run, median_of, ratio_to }) => [server, run, median_of, ratio_to]),
    [
      ['halley', 1, undefined, undefined],
      ['uws', 1, undefined, undefined],
      ['halley', undefined, 1, undefined],
      ['uws', undefined, 1, undefined],
      ['halley', undefined, undefined, 'uws'],
    ],
  )
  const [halley, uws, , , ratio] = lines
  t.match(halley, NO_FAULT)
  t.match(uws, NO_FAULT)
  t.equal(ratio.cpu_us_per_message, Number((halley.cpu_us_per_message / uws.cpu_us_per_message).toFixed(3)))
})

t.test('a wrong command line is refused with one clear line', async t => {
  const cases = [
    ['fam', /no scenario "fam"; there are memory, fan, one2one, big, poll/],
    ['fan --conns=many', /--conns is a whole number from 1, not "many"/],
    ['fan --size=10', /--size is a whole number from 64/],
    ['fan --server=nginx', /a server is one of halley, uws, ws, embedded, not "nginx"/],
    ['fan --nodes=2', /--nodes and --redis want --engine redis/],
    ['channels --against=uws', /channels is for Halley only, not for uws/],
    ['restarts --kill=all', /--kill is redis or node, not "all"/],
    ['fan --speed=9', /Unknown option '--speed'/],
  ]
  for (const [args, message] of cases) {
    await t.rejects(run(process.execPath, [script, ...String(args).split(' ')]), {
      code: 2,
      stderr: message,
    })
  }
})

t.test('more clients than files may be open are refused before anything starts', { skip }, async t => {
  const all = run(process.execPath, [script, 'fan', '--server=uws', '--conns=9999999'])
  await t.rejects(all, { code: 1, stderr: /fan: the limit of open files leaves uws room for \d+ clients/ })
})

t.test('--help names every scenario', async t => {
  const { stdout } = await run(process.execPath, [script, '--help'])
  t.match(stdout, /memory .*\n.*fan .*\n.*one2one .*\n.*big .*\n.*poll .*\n.*latency .*\n.*channels /)
})

t.test('a histogram knows every value to within 1.6 %, and its maximum exactly', async t => {
  for (let value = 1; value < 2 ** 37; value = Math.ceil(value * 1.37)) {
    const histogram = new Histogram()
    histogram.add(value)
    histogram.add(2 ** 37)
    const seen = histogram.percentile(50)
    t.ok(seen >= value && seen <= value * (1 + 1 / 64), `${value} is seen as ${seen}`)
    t.equal(histogram.percentile(100), 2 ** 37)
  }
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
