// Shared polls of two nodes with Redis.

import t from 'tap'
import { startNode } from '../../channels/broker/redis/nodes.js'
import { needsRedis, startRedis } from '../../kit/servers/redis.js'
import { until } from '../../kit/wait.js'
import { RefreshBackend, SECRET } from './refresh-backend.js'
import { namespace, newChannel, onBothWorkers } from './rig.js'

needsRedis(t)
const redis = await startRedis(t)
const backend = await RefreshBackend.start(t)
const config = {
  shared_poll: { hmac_secret_key: SECRET },
  http_stream: { enabled: true },
  channel: {
    proxy: { shared_poll_refresh: { endpoint: backend.url, timeout: '20s' } },
    namespaces: [namespace('poll'), namespace('push', { publish_enabled: true, refresh_interval: '1h' })],
  },
}
const nodes = await Promise.all([
  startNode(t, redis.address, { config }),
  startNode(t, redis.address, { config }),
])

/** @param {any} t @param {string} channel @returns {Promise<import('./rig.js').Poller[]>} two on each worker */
const everywhere = async (t, channel) =>
  (await Promise.all(nodes.map(gateway => onBothWorkers(t, gateway, channel)))).flat()

t.test('a publication reaches the clients of both nodes once and in order', async t => {
  const channel = newChannel('push')
  const all = await everywhere(t, channel)
  await Promise.all(all.map(poller => poller.track({ a: 0, b: 0 })))
  for (let version = 1; version <= 50; version++)
    for (const key of ['a', 'b']) {
      const fields = { channel, key, version, data: { version } }
      t.strictSame(await nodes[version % 2].api('shared_poll_publish', fields), { result: {} })
    }
  for (const poller of all)
    t.same(
      (await poller.until('b', 50)).filter(({ key }) => key === 'a').map(({ version }) => version),
      Array.from({ length: 50 }, (_, n) => n + 1),
    )
})

t.test('each node polls for its own clients', async t => {
  const channel = newChannel('poll')
  const all = await everywhere(t, channel)
  backend.put(channel, { a: { data: 1, version: 1 } })
  await Promise.all(all.map(poller => poller.track({ a: 0 })))
  for (const poller of all) t.match(await poller.next(), { key: 'a', data: 1, version: 1 })
  /** @type {((value?: any) => void)[]} */
  const pending = []
  backend.answers.set(channel, () => new Promise(resolve => pending.push(resolve)))
  // One request of each node; more if they time out on a busy machine.
  await until(() => pending.length >= 2)
  backend.answers.delete(channel)
  backend.put(channel, { a: { data: 2, version: 2 } })
  for (const release of pending) release()
  for (const poller of all) t.match(await poller.next(), { key: 'a', data: 2, version: 2 })
})

t.test('rounds go on while Redis is away, and publications after it is back', async t => {
  const [polled, pushed] = [newChannel('poll'), newChannel('push')]
  const [a] = await onBothWorkers(t, nodes[0], polled)
  const far = await onBothWorkers(t, nodes[1], pushed)
  backend.put(polled, { a: { data: 1, version: 1 } })
  await a.track({ a: 0 })
  t.match(await a.next(), { version: 1 })
  for (const poller of far) await poller.track({ a: 0 })
  await redis.stop()
  backend.put(polled, { a: { data: 2, version: 2 } })
  t.match(await a.next(), { version: 2 })
  redis.cont()
  let version = 0
  await until(async () => {
    const fields = { channel: pushed, key: 'a', data: 'back', version: ++version }
    return 'result' in (await nodes[0].api('shared_poll_publish', fields))
  })
  for (const poller of far) t.match(await poller.next(), { key: 'a', data: 'back' })
})
