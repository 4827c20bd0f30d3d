import t from 'tap'
import { settingsOf, TestEngine } from './engines.js'
import { startTarget, testRecovery } from './recovery.js'

const gateway = await startTarget(t)

for (const transport of /** @type {const} */ (['websocket', 'http_stream', 'uni_http_stream']))
  t.test(`${transport}: with recovery, cut connections lose and duplicate nothing`, t =>
    testRecovery(t, gateway, transport, 200),
  )

t.test('connections churn while their number changes', async t => {
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
