// Redis returns with less data: clients are notified and get everything in order.

import t from 'tap'
import { needsRedis, startRedis } from '../../../kit/servers/redis.js'
import { until } from '../../../kit/wait.js'
import { channels, startNode } from './nodes.js'
import { audit, begin, Listener, Load, reachedBy, SdkListener, unrecoveredCounts } from './traffic.js'

needsRedis(t)

const redis = await startRedis(t)
const [a, b] = await Promise.all([
  startNode(t, redis.address, { workers: 1 }),
  startNode(t, redis.address, { workers: 1 }),
])

/** Listeners on both gateways, and publishers. @param {any} t @param {string} name of the channels */
async function traffic(t, name) {
  const kept = channels(`kept:${name}`, 6)
  const quiet = `kept:${name}:idle`
  const raw = [a, b].map(({ ws }) => new Listener(() => ws, kept))
  const listeners = [...raw, ...[a, b].map(({ ws }) => new SdkListener(() => ws, kept))]
  const idle = [a, b].map(({ ws }) => new Listener(() => ws, [quiet]))
  await a.api('publish', { channel: quiet, data: { id: 'before' } })
  await begin(t, [...listeners, ...idle])
  await a.api('publish', { channel: quiet, data: { id: 'first' } })
  const load = new Load(() => [a.url, b.url], kept)
  await load.acked(300)
  return { quiet, raw, listeners, idle, load }
}

/** @param {any} t @param {Awaited<ReturnType<typeof traffic>>} traffic */
async function notifiedOnce(t, { raw, listeners, load }) {
  await until(() => unrecoveredCounts(listeners).every(times => times > 0))
  await load.acked(300)
  await load.stop()
  await audit(t, load, listeners, a)
  t.same([...new Set(unrecoveredCounts(listeners))], [1])
  const codes = raw.flatMap(({ unsubscribed }) => unsubscribed.filter(({ code }) => code !== 2500))
  t.same(codes, [])
  const closed = raw.flatMap(({ closed }) => closed.filter(code => code !== 3010))
  t.same(closed, [])
}

t.test('clients are notified once when Redis is flushed', async t => {
  const all = await traffic(t, 'flushed')
  await redis.call('FLUSHALL')
  await all.load.acked(300)
  await notifiedOnce(t, all)
  t.equal(all.load.failed, 0)
})

t.test('clients are notified when Redis restarts with older data', async t => {
  const all = await traffic(t, 'restored')
  const { listeners, idle, load } = all
  await redis.call('SAVE')
  await load.acked(300)
  // Clients that have received nothing since have only saved publications.
  for (const [channel] of load.acknowledged) {
    const { result } = await a.api('history', { channel, limit: 0 })
    await reachedBy(listeners, channel, result)
  }
  await redis.restart()
  await notifiedOnce(t, all)
  t.same(unrecoveredCounts(idle), [0, 0], 'clients at an offset that still exists continue')
  const returns = idle.map(({ returns }) => returns)
  t.same(returns, [0, 0])
})
