// An engine against the real gateway: what it counts is what was published.

import t from 'tap'
import { startGateway } from '../../gateway.js'
import { publishOf, settingsOf, TestEngine } from './engines.js'

const open = { allow_subscribe_for_client: true, allow_publish_for_client: true }
const config = {
  client: {
    token: { hmac_secret_key: 'secret' },
    connect_include_server_time: true,
    ping_interval: '2s',
    pong_timeout: '1s',
  },
  channel: {
    without_namespace: open,
    namespaces: [{ name: 'rec', ...open, history_size: 1000, history_ttl: '60s', force_recovery: true }],
  },
  http_stream: { enabled: true },
  uni_http_stream: { enabled: true },
}
const gateway = await startGateway(t, config)

const none = {
  duplicates: 0,
  disordered: 0,
  gaps: 0,
  lost: 0,
  damaged: 0,
  refused: 0,
  unpublished: 0,
  unrecovered: 0,
}

for (const transport of ['websocket', 'http_stream', 'uni_http_stream']) {
  t.test(`${transport}: with recovery nothing is lost or doubled when connections are cut`, async t => {
    const test = new TestEngine(t)
    const { engine } = test
    const settings = settingsOf(gateway.url, {
      transport,
      connections: 200,
      channels: [`rec:${transport}{1..20}`, `rec:own-${transport}{own}`],
      recover: true,
      user: 'u{own}',
    })
    engine.apply(settings)
    await test.until(({ gauges }) => gauges.open === 200)
    t.match(test.counters, { opened: 200, failed: 0, ended: 0, closed: 0, reconnects: 0, refused: 0 })
    t.equal(test.connect.count, 200)

    const publishing = {
      ...settings,
      publish: publishOf(`rec:${transport}{1..20}`),
      publishFrom: Date.now() + 100,
    }
    engine.apply(publishing)
    await test.until(({ counters }) => counters.published > 100)
    t.equal(engine.cut(0.5, 'reset'), 100)
    await test.until(({ counters }) => counters.reconnects === 100)
    t.equal(engine.cut(0.5, 'close'), 100)
    await test.until(({ counters }) => counters.reconnects === 200 && counters.published > 400)
    engine.apply({ ...publishing, publish: null, publishFrom: 0 })
    await test.quiet()

    const { counters, latency, probe, answer, gauges } = test
    t.equal(gauges.open, 200)
    t.match(counters, { ...none, missed: 0, closed: 200, ended: 0, recovered: 400 }, test.faults)
    t.equal(counters.received, counters.published * 10, 'ten connections have each channel')
    t.equal(latency.count, counters.received)
    t.equal(probe.count, counters.received)
    t.equal(answer.count, counters.published)
    t.ok(
      latency.min > 0 && latency.percentile(50) < 1000,
      `latency ${latency.min} ... ${latency.percentile(50)}`,
    )
    t.same(engine.reckon(engine.ledgers()), { expected: counters.received, lost: 0, unknown: 0 })
    t.ok(test.clock.against === 'gateway' && Math.abs(test.clock.offset) <= test.clock.error + 1, test.clock)
  })
}

t.test('without recovery, what was published meanwhile is missed, not lost', async t => {
  const test = new TestEngine(t)
  const there = new TestEngine(t, { machine: 2 })
  const settings = settingsOf(gateway.url, {
    connections: 100,
    channels: ['m{1..10}'],
    user: 'u{own}',
    backoff: { min: 200, max: 300 },
    publishFrom: Date.now() + 1000,
  })
  test.engine.apply(settings)
  await test.until(({ gauges }) => gauges.open === 100)
  const publish = publishOf('m{1..10}', { order: 'sequential', via: 'client' })
  there.engine.apply({ ...settings, connections: 0, publish })
  await there.until(({ counters }) => counters.published > 50)
  test.engine.cut(1, 'reset')
  await test.until(({ counters, gauges }) => counters.reconnects === 100 && gauges.open === 100)
  const { published } = there.sample().counters
  await there.until(({ counters }) => counters.published > published + 40)
  there.engine.apply({ ...settings, connections: 0, publishFrom: 0 })
  await test.quiet()
  const { counters, latency, probe } = test
  const sent = there.sample().counters
  t.match(counters, { ...none, recovered: 0, closed: 100, published: 0 }, test.faults)
  t.match(sent, { unpublished: 0, received: 0, opened: 0 }, there.faults)
  t.ok(counters.missed > 100, `${counters.missed}`)
  t.equal(counters.received + counters.missed, sent.published * 10)
  const ledgers = there.engine.ledgers()
  t.same(test.engine.reckon(ledgers), { expected: sent.published * 10, lost: 0, unknown: 0 })
  t.same(there.engine.reckon(ledgers), { expected: 0, lost: 0, unknown: 0 })
  t.equal(probe.count, 0, 'nothing was published on this machine')
  t.equal(latency.count, counters.received)
  t.equal(there.clock.against, 'gateway', 'a publisher without connections has asked for the time')
  t.ok(Math.abs(there.clock.offset) <= there.clock.error + 0.5, there.clock)
  const error = test.clock.error + there.clock.error
  t.ok(latency.min > -error && latency.percentile(50) < 1000, `${latency.min} ± ${error}`)
})

t.test('churn, and a number that is raised and lowered live', async t => {
  const test = new TestEngine(t)
  const { engine } = test
  const settings = settingsOf(gateway.url, {
    connections: 50,
    channels: ['c{own}'],
    user: 'u{own}',
    churn: 200,
  })
  engine.apply(settings)
  await test.until(({ counters }) => counters.closed >= 100)
  engine.apply({ ...settings, churn: 0, connections: 120 })
  await test.until(({ gauges }) => gauges.open === 120)
  const { counters } = test
  t.equal(counters.opened, counters.closed + 120)
  t.equal(counters.reconnects, counters.closed)
  engine.apply({ ...settings, churn: 0, connections: 30 })
  await test.until(({ gauges }) => gauges.open === 30)
  t.equal(test.counters.closed, counters.closed + 90)
  engine.apply({ ...settings, churn: 0, connections: 60 })
  await test.until(({ gauges }) => gauges.open === 60)
  t.match(test.counters, { failed: 0, ended: 0, refused: 0, reconnects: counters.reconnects })
  engine.apply({ ...settings, churn: 0, connections: 60, channels: ['d{own}'] })
  await test.until(
    ({ counters: { opened }, gauges }) => gauges.open === 60 && opened === test.counters.closed + 60,
  )
  await test.until(({ counters: { pings } }) => pings > 0)
  t.same(Object.keys((await gateway.api('channels', { pattern: 'c*' })).result.channels), [])
  t.equal(Object.keys((await gateway.api('channels', { pattern: 'd*' })).result.channels).length, 60)
  await engine.stop()
  t.equal(test.sample().gauges.open, 0)
})
