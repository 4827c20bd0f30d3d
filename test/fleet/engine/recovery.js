// Counters of an engine with a real gateway while connections are cut, over a transport.

import { startGateway } from '../../kit/gateway.js'
import { publishOf, settingsOf, TestEngine } from './engines.js'

const open = { allow_subscribe_for_client: true, allow_publish_for_client: true }
const config = {
  client: {
    token: { hmac_secret_key: 'secret' },
    connect_include_server_time: true,
    ping_interval: '8s',
    pong_timeout: '7s',
  },
  channel: {
    without_namespace: open,
    namespaces: [{ name: 'rec', ...open, history_size: 1000, history_ttl: '60s', force_recovery: true }],
  },
  http_stream: { enabled: true },
  uni_http_stream: { enabled: true },
}
/** @param {any} t */
export const startTarget = t => startGateway(t, config)

export const none = {
  duplicates: 0,
  disordered: 0,
  gaps: 0,
  lost: 0,
  damaged: 0,
  refused: 0,
  unpublished: 0,
  unrecovered: 0,
}

/** Cuts connections over a transport. @param {any} t @param {number} connections a multiple of 20 */
export async function testRecovery(t, gateway, transport, connections) {
  const half = connections / 2
  const began = performance.now()
  const test = new TestEngine(t)
  const { engine } = test
  const settings = settingsOf(gateway.url, {
    transport,
    connections,
    channels: [`rec:${transport}{1..20}`, `rec:own-${transport}{own}`],
    recover: true,
    user: 'u{own}',
  })
  engine.apply(settings)
  await test.until(({ gauges }) => gauges.open === connections)
  t.match(test.counters, { opened: connections, failed: 0, ended: 0, closed: 0, reconnects: 0, refused: 0 })
  t.equal(test.connect.count, connections)

  const publishing = {
    ...settings,
    publish: publishOf(`rec:${transport}{1..20}`),
    publishFrom: Date.now() + 100,
  }
  engine.apply(publishing)
  await test.until(({ counters }) => counters.published > 100)
  t.equal(engine.cut(0.5, 'reset'), half)
  await test.until(({ counters }) => counters.reconnects === half)
  t.equal(engine.cut(0.5, 'close'), half)
  await test.until(({ counters }) => counters.reconnects === connections && counters.published > 400)
  engine.apply({ ...publishing, publish: null, publishFrom: 0 })
  // When publishing has ended, all its publications are counted.
  const ledgers = await engine.ledgers()
  await test.quiet(({ received, published }) => received >= published * half * 0.1)

  const { counters, latency, probe, answer, gauges } = test
  t.equal(gauges.open, connections)
  t.match(
    counters,
    { ...none, missed: 0, closed: connections, ended: 0, recovered: 2 * connections },
    test.faults,
  )
  t.equal(counters.received, counters.published * half * 0.1, 'each channel has a twentieth of them')
  t.equal(latency.count, counters.received)
  t.equal(probe.count, counters.received)
  t.equal(answer.count, counters.published)
  // The gateway's clock is known only up to that error.
  t.ok(
    latency.min > -(test.clock.error + 1) && latency.percentile(50) < performance.now() - began,
    `latency ${latency.min} ... ${latency.percentile(50)}`,
  )
  t.same(engine.reconcile(ledgers), { expected: counters.received, lost: 0, unknown: 0 })
  t.ok(test.clock.against === 'gateway' && Math.abs(test.clock.offset) <= test.clock.error + 1, test.clock)
}
