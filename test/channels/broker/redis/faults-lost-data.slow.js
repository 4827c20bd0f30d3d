// Redis comes back with less than it had: clients are told, and never get anything in the wrong order.

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

/**
 * Listeners on both gateways, and publishers.
 * @param {any} t
 * @param {string} name of the channels
 */
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

/**
 * @param {any} t
 * @param {Listener[]} listeners
 */
function assertCodes(t, listeners) {
  t.same(
    listeners.flatMap(({ unsubscribed }) => unsubscribed.filter(({ code }) => code !== 2500)),
    [],
  )
  t.same(
    listeners.flatMap(({ closed }) => closed.filter(code => code !== 3010)),
    [],
  )
}

t.test('Redis is flushed: everybody is told, once, and gets everything from then on', async t => {
  const { raw, listeners, load } = await traffic(t, 'flushed')
  await redis.call('FLUSHALL')
  await load.acked(300)
  await until(() => unrecoveredCounts(listeners).every(times => times > 0))
  await load.acked(300)
  await load.stop()
  await audit(t, load, listeners, a)
  t.same([...new Set(unrecoveredCounts(listeners))], [1])
  t.equal(load.failed, 0)
  assertCodes(t, raw)
})

t.test(
  'Redis restarts with nothing: everybody is told at once, and gets everything from then on',
  async t => {
    const { quiet, raw, listeners, idle, load } = await traffic(t, 'restarted')
    await redis.restart()
    await until(() => unrecoveredCounts(listeners).every(times => times > 0))
    await until(() => unrecoveredCounts(idle).every(times => times > 0))
    await load.acked(300)
    await load.stop()
    await audit(t, load, listeners, a)
    t.same([...new Set(unrecoveredCounts([...listeners, ...idle]))], [1])
    assertCodes(t, [...raw, ...idle])
    // Everything else is there again, too.
    const clients = idle.map(({ client }) => client).sort()
    await until(async () => {
      const { result } = await b.api('presence', { channel: quiet })
      return Object.keys(result.presence).length === clients.length
    })
    await until(async () => (await a.api('info')).result.nodes.length === 2)
    t.same((await b.api('channels', { pattern: quiet })).result.channels, {
      [quiet]: { num_clients: 2 },
    })
  },
)

t.test(
  'Redis restarts with older data: whoever had more is told, and gets everything from then on',
  async t => {
    const { raw, listeners, idle, load } = await traffic(t, 'restored')
    await redis.call('SAVE')
    await load.acked(300)
    // Whoever has not got anything since has no more than what is saved.
    for (const [channel] of load.acknowledged) {
      const { result } = await a.api('history', { channel, limit: 0 })
      await reachedBy(listeners, channel, result)
    }
    await redis.restart()
    await until(() => unrecoveredCounts(listeners).every(times => times > 0))
    await load.acked(300)
    await load.stop()
    await audit(t, load, listeners, a)
    t.same([...new Set(unrecoveredCounts(listeners))], [1])
    assertCodes(t, raw)
    t.same(unrecoveredCounts(idle), [0, 0], 'who had no more than what is there goes on')
    t.same(
      idle.map(({ returns }) => returns),
      [0, 0],
    )
  },
)

t.test('publications that took the places of lost ones are not taken for them', async t => {
  const raw = [a, b].map(({ ws }) => new Listener(() => ws, ['kept:forked']))
  const listeners = [...raw, new SdkListener(() => b.ws, ['kept:forked'])]
  await begin(t, listeners)
  const publish = async (/** @type {string} */ id) => {
    const { error, result } = await a.api('publish', { channel: 'kept:forked', data: { id } })
    return error ? null : result
  }
  for (let i = 0; i < 5; i++) await publish(`before ${i}`)
  await redis.call('SAVE')
  for (let i = 0; i < 5; i++) await publish(`lost ${i}`)
  const known = (await a.api('history', { channel: 'kept:forked', limit: 0 })).result
  // What is on its way to a gateway when Redis dies may come or not.
  await reachedBy(listeners, 'kept:forked', known)
  await redis.kill()
  // Another gateway is back earlier than theirs: the stream is as long again as they know it, but not the same one.
  const other = await startRedis(t, { dir: redis.dir })
  const c = await startNode(t, other.address, { workers: 1 })
  for (let i = 0; i < 7; i++) await c.api('publish', { channel: 'kept:forked', data: { id: `other ${i}` } })
  await other.call('SAVE')
  await other.kill()
  await redis.restart()
  await until(() => unrecoveredCounts(listeners).every(times => times > 0))
  await until(() => publish('after'))
  const end = { channel: 'kept:forked', limit: 0 }
  const result = await until(async () => (await a.api('history', end)).result)
  await reachedBy(listeners, 'kept:forked', result)
  for (const { faults, tracks } of listeners) {
    t.same(faults, [])
    const got = [...(tracks.get('kept:forked')?.got.values() ?? [])]
    t.same(got.slice(0, 10), [...ids('before'), ...ids('lost')])
    t.equal(got.at(-1), 'after')
  }
  assertCodes(t, raw)
})

/** @param {string} name */
const ids = name => Array.from({ length: 5 }, (_, i) => `${name} ${i}`)
