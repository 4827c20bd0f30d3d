// Runs of the benchmarks in a tiny size.

import t from 'tap'
import { skipDriver } from '../kit/drivers.js'
import { withoutPostgres } from '../kit/servers/postgres.js'
import { bench, countsAll, NO_FAULT, run, script, skip } from './runs.js'

const unavailable = 'npm installs nothing here'

// A run is mostly waiting: a second of warm-up and a second that is measured. None of the figures matters here.
t.jobs = 3

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

t.test('poll: channels with unequal numbers of clients', { skip }, async t => {
  const [{ faults, received, expected }] = await bench('poll --channels=7')
  t.equal(faults, 0)
  t.equal(received, expected, '50 clients on 7 channels: one of them has eight')
})

t.test(
  'a control runs in turn with the gateway, medians and ratios follow',
  { skip: skip || skipDriver('uws') },
  async t => {
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
  },
)

t.test('consumers: each row of an outbox is received', { skip: skip || withoutPostgres() }, async t => {
  const flags = ['--subscribers=10', '--single=5', '--rate=200', '--seconds=1', '--runs=1', '--json']
  const { stdout } = await run(process.execPath, [script, 'consumers', ...flags])
  const result = JSON.parse(stdout)
  t.match(result, { variant: 'postgresql', rows: 200, missing: 0, order_faults: 0 })
  t.ok(result.idle_p50_ms > 0 && result.load_p50_ms > 0)
})

t.test('republish: each publication is delivered, and is in the stream', { skip }, async t => {
  const flags = ['--clients=10', '--channels=5', '--rate=200', '--seconds=1', '--runs=1', '--json']
  const { stdout } = await run(process.execPath, [script, 'republish', ...flags])
  const [without, redis] = stdout
    .trim()
    .split('\n')
    .map((/** @type {string} */ line) => JSON.parse(line))
  t.match(without, { variant: 'without', errors: 0, undelivered: 0, republished: 0 })
  t.match(redis, { variant: 'redis_stream', errors: 0, undelivered: 0, lost: 0 })
  t.equal(redis.republished, redis.published)
  t.ok(redis.published > 0 && redis.queues_cpu_us_per_publish > 0 && redis.reply_p50_ms > 0)
})

t.test('peers: a server that npm has, beside the gateway', { skip }, async t => {
  const flags = ['--peers=socket.io', '--loads=fan', '--conns=50', '--seconds=1', '--runs=1', '--json']
  const installing = run(process.execPath, [script, 'peers', '--install', ...flags])
  const { stdout } = await installing.catch(error => {
    // Without the registry there is nothing to measure.
    if (/npm install failed/.test(error.stderr)) return { stdout: '' }
    throw error
  })
  if (stdout === '') return void t.pass(unavailable)
  const results = stdout
    .trim()
    .split('\n')
    .map((/** @type {string} */ line) => JSON.parse(line))
  t.same(
    results.map(({ server }) => server),
    ['halley', 'socket.io'],
  )
  for (const result of results) {
    t.match(result, NO_FAULT)
    t.ok(result.published > 0)
    t.equal(result.delivered, result.published)
  }
})

t.test('more clients than files may be open are refused before anything starts', { skip }, async t => {
  const all = run(process.execPath, [script, 'fan', '--server=uws', '--conns=9999999'])
  await t.rejects(all, { code: 1, stderr: /fan: the limit of open files leaves uws room for \d+ clients/ })
})

t.test('proxy: connects that a backend admits', { skip }, async t => {
  const { stdout } = await run(process.execPath, [script, 'proxy', '--conns=50', '--rounds=1', '--json'])
  const result = JSON.parse(stdout)
  t.equal(result.scenario, 'proxy')
  t.equal(result.failed, 0)
  t.ok(result.connects_per_s > 0)
  t.ok(result.backend_per_s > 0)
})

t.test('batching: each update arrives, or is counted as conflated', { skip }, async t => {
  const flags = ['--clients=50', '--readers=3', '--seconds=1', '--workers=1', '--runs=1', '--json']
  const { stdout } = await run(process.execPath, [script, 'batching', ...flags])
  const results = stdout
    .trim()
    .split('\n')
    .map((/** @type {string} */ line) => JSON.parse(line))
  t.same(
    results.map(({ scenario }) => scenario),
    ['batching', 'batching', 'conflation', 'conflation'],
  )
  for (const result of results.slice(0, 2)) t.match(result, NO_FAULT)
  for (const result of results.slice(2))
    t.match(result, { updates: 1000, keys_without_newest: 0, order_faults: 0, unaccounted: 0 })
  t.equal(results[2].received_per_s, results[2].updates_per_s)
  t.ok(results[3].received_per_s < results[3].updates_per_s)
})
