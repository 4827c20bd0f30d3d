// An engine and a real gateway: its counters match the publications.

import t from 'tap'
import { publishOf, settingsOf, TestEngine } from './engines.js'
import { none, startTarget, testRecovery } from './recovery.js'

const gateway = await startTarget(t)

t.test('with recovery, cut connections lose and duplicate nothing', t =>
  testRecovery(t, gateway, 'websocket', 40),
)

t.test('without recovery, messages published during a reconnect are missed, not lost', async t => {
  const began = performance.now()
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
  // If the machine is blocked, they may return before anything is published: cut them again.
  let closed = 0
  do {
    closed += test.engine.cut(1, 'reset')
    await test.until(({ counters, gauges }) => counters.reconnects === closed && gauges.open === 100)
    const { published } = there.sample().counters
    await test.until(({ counters }) => counters.received + counters.missed >= published * 10)
  } while (test.counters.missed <= 100)
  const { published } = there.sample().counters
  await there.until(({ counters }) => counters.published > published + 40)
  there.engine.apply({ ...settings, connections: 0, publishFrom: 0 })
  const ledgers = await there.engine.ledgers()
  await test.quiet(({ received, missed }) => received + missed >= there.sample().counters.published * 10)
  const { counters, latency, probe } = test
  const sent = there.sample().counters
  t.match(counters, { ...none, recovered: 0, closed, published: 0 }, test.faults)
  t.match(sent, { unpublished: 0, received: 0, opened: 0 }, there.faults)
  t.ok(counters.missed > 100, `${counters.missed}`)
  t.equal(counters.received + counters.missed, sent.published * 10)
  t.same(test.engine.reconcile(ledgers), { expected: sent.published * 10, lost: 0, unknown: 0 })
  t.same(there.engine.reconcile(ledgers), { expected: 0, lost: 0, unknown: 0 })
  t.equal(probe.count, 0, 'nothing was published on this machine')
  t.equal(latency.count, counters.received)
  t.equal(there.clock.against, 'gateway', 'the publisher has synchronized its clock')
  t.ok(Math.abs(there.clock.offset) <= there.clock.error + 0.5, there.clock)
  const error = test.clock.error + there.clock.error
  t.ok(
    latency.min > -error && latency.percentile(50) < performance.now() - began,
    `${latency.min} ± ${error}`,
  )
})
