// Runs of the benchmarks in a tiny size.

import t from 'tap'
import { withoutPostgres } from '../kit/servers/postgres.js'
import { linesOf, run, script, skip } from './runs.js'

// A run is mostly waiting: a second of warm-up and a second that is measured. None of the figures matters here.
t.jobs = 3

t.test('poll: every message is in the answer to each poll of its channel', { skip }, async t => {
  const flags = ['--conns=50', '--channels=5', '--seconds=1', '--workers=1', '--against=ws', '--json']
  const { stdout } = await run(process.execPath, [script, 'poll', ...flags])
  for (const { connections, faults, rounds, answers, received, expected, cpu_us_per_round } of linesOf(
    stdout,
  )) {
    t.same([connections, faults], [50, 0])
    t.equal(answers, rounds * 10)
    t.equal(received, expected)
    t.ok(cpu_us_per_round > 0)
  }
})

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
  const [without, redis] = linesOf(stdout)
  t.match(without, { variant: 'without', errors: 0, undelivered: 0, republished: 0 })
  t.match(redis, { variant: 'redis_stream', errors: 0, undelivered: 0, lost: 0 })
  t.equal(redis.republished, redis.published)
  t.ok(redis.published > 0 && redis.queues_cpu_us_per_publish > 0 && redis.reply_p50_ms > 0)
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
  const results = linesOf(stdout)
  t.same(
    results.map(({ scenario }) => scenario),
    ['batching', 'batching', 'conflation', 'conflation'],
  )
  for (const result of results.slice(0, 2))
    t.match(result, { connections: 50, failed: 0, closed: 0, missing: 0, order_faults: 0, publish_errors: 0 })
  for (const result of results.slice(2))
    t.match(result, { updates: 1000, keys_without_newest: 0, order_faults: 0, unaccounted: 0 })
  t.equal(results[2].received_per_s, results[2].updates_per_s)
  t.ok(results[3].received_per_s < results[3].updates_per_s)
})
