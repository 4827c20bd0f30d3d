import t from 'tap'
import { BatchStats, noBatchCounts } from '../../src/metrics/batch-stats.js'
import { MapCounter } from '../../src/metrics/map-counter.js'
import { Traffic } from '../../src/metrics/traffic.js'
import { WorkerSampler } from '../../src/metrics/worker-sample.js'
import { until } from '../kit/wait.js'

/** @param {any} t */
function setUp(t, backlogs = /** @type {any[]} */ ([])) {
  const traffic = new Traffic(['connect', 'publish'])
  const sessions = { open: 0, count: 0, accepts: 0, connects: 0 }
  const batches = { held: 0, stats: new BatchStats() }
  const hub = { subscriptions: 0, channels: new Map(), delivered: 0, batches }
  const maps = new MapCounter()
  const sampler = new WorkerSampler(
    /** @type {any} */ ({ index: 3, sessions, hub, traffic, maps, backlogs, clock: Date.now }),
  )
  t.teardown(() => sampler.stop())
  return { traffic, sessions, hub, maps, sampler }
}

t.test('counts are those since the sample before; names that did not occur are absent', async t => {
  const { traffic, sessions, hub, maps, sampler } = setUp(t)
  Object.assign(sessions, { open: 3, count: 2, accepts: 5, connects: 4 })
  Object.assign(hub, { subscriptions: 7, delivered: 9 })
  hub.channels.set('a', {})
  maps.publishes = 2
  const webSocket = traffic.of('websocket')
  webSocket.connected({ binary: false })
  webSocket.connected({ binary: true })
  webSocket.received(2, 100)
  webSocket.fannedOut(10, 50)
  traffic.of('sse').sent(1, 20)
  traffic.of('poll')
  traffic.commands[1] += 2
  traffic.add('errors', 103)
  traffic.add('closes', 1006)
  traffic.add('closes', 1006)
  traffic.api('publish').count++
  traffic.api('info')
  const first = sampler.sample()
  t.match(first, {
    index: 3,
    pid: process.pid,
    connections: { open: 3, connected: 2, by: { websocket: { json: 1, protobuf: 1 } } },
    subscriptions: 7,
    channels: 1,
    outbox: { bytes: 0, largest: 0 },
    accepting: true,
    log: { dropped: 0, error: null },
  })
  t.same(first.counts, {
    accepts: 5,
    connects: 4,
    in: { messages: 2, bytes: 100 },
    out: { messages: 11, bytes: 520 },
    transports: {
      websocket: { connects: 2, in: { messages: 2, bytes: 100 }, out: { messages: 10, bytes: 500 } },
      sse: { connects: 0, in: { messages: 0, bytes: 0 }, out: { messages: 1, bytes: 20 } },
    },
    publishes: 0,
    deliveries: 9,
    commands: { publish: 2 },
    errors: { 103: 1 },
    closes: { 1006: 2 },
    unsubscribes: {},
    recoveries: { recovered: 0, failed: 0 },
    api: { publish: 1 },
    api_errors: {},
    refusals: {},
    rate_limited: {},
    rate_unchecked: 0,
    acks: {},
    requests: {},
    user_status_dropped: 0,
    channel_events: {},
    channel_event_failures: 0,
    channel_events_dropped: 0,
    hooks: {},
    batches: noBatchCounts(),
    maps: { publishes: 2, removals: 0, expiries: 0 },
    polls: { calls: 0, keys: 0, failures: 0, updates: 0 },
  })
  sessions.accepts = 6
  hub.delivered = 12
  const second = sampler.sample()
  t.equal(second.counts.accepts, 1)
  t.equal(second.counts.connects, 0)
  t.equal(second.counts.deliveries, 3)
  t.same(second.counts.transports, {})
  t.same(second.counts.api, {})
  t.equal(second.counts.maps.publishes, 0)
  t.same(second.connections.by, first.connections.by, 'who is connected still is')
  t.equal(sampler.last, second)
})

t.test('the outbox is the sum of all backlogs', async t => {
  const backlogs = [
    { backlog: () => ({ bytes: 100, largest: 60 }) },
    { backlog: () => ({ bytes: 80, largest: 80 }) },
  ]
  const { sampler } = setUp(t, backlogs)
  t.same(sampler.sample().outbox, { bytes: 180, largest: 80 })
})

t.test('samples are sent at full seconds, after a blocked loop at once', async t => {
  const { sampler } = setUp(t)
  /** @type {import('../../src/metrics/schema.js').WorkerSample[]} */
  const samples = []
  /** @type {(count: number) => Promise<void>} */
  const have = async count => {
    await until(() => samples.length >= count)
  }
  let busyUntil = 0
  const block = () => {
    busyUntil = Date.now() + 1500
    while (Date.now() < busyUntil);
  }
  sampler.start(sample => {
    // Right behind the second one: over the next full second, and half of the one behind it.
    if (samples.push(sample) === 2) setImmediate(block)
  })
  await have(2)
  t.ok(samples[1].interval >= 200)
  t.ok(samples[1].time % 1000 < 200 || samples[1].loop.ticks.max > 100, `${samples[1].time % 1000} ms late`)
  await have(3)
  t.ok(
    samples[2].time - busyUntil < 200 || samples[2].loop.ticks.max > 1600,
    `${samples[2].time - busyUntil} ms late`,
  )
  t.ok(samples[2].loop.ticks.max >= 1400, 'and tells of it')
  await have(4)
  t.ok(samples[3].interval >= 200, `${samples[3].interval} ms later`)
  t.ok(samples.every(({ time }, i) => i === 0 || time > samples[i - 1].time))
})
