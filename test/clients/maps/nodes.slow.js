// A node that is killed, with Redis: its clients leave presence maps, its acknowledged writes stay.

import t from 'tap'
import { startNode } from '../../channels/broker/redis/nodes.js'
import { RawClient } from '../../kit/raw-client.js'
import { needsRedis, startRedis } from '../../kit/servers/redis.js'
import { TcpProxy } from '../../kit/tcp-proxy.js'
import { until } from '../../kit/wait.js'
import { MapLoad, MapWatcher, mapsOf, namespaces, settle, stateOf } from './traffic.js'

needsRedis(t)
t.setTimeout(300_000)

const OPEN = { allow_subscribe_for_client: true, allow_subscribe_for_anonymous: true }
const OWN = {
  mode: 'persistent',
  ...{ client_key: 'client_id', remove_client_on_unsubscribe: true },
  ...{ allow_publish_for_subscriber: true, allow_publish_for_anonymous: true },
}
const config = {
  channel: {
    namespaces: [
      ...namespaces,
      { name: 'room', ...OPEN, map_clients_presence_channel_prefix: 'who:' },
      // Longer than the test: not the lifetime removes them.
      { name: 'who', ...OPEN, subscription_type: 'map_clients', map: { mode: 'ephemeral', key_ttl: '10m' } },
      { name: 'own', ...OPEN, subscription_type: 'map', map: OWN },
    ],
  },
}

t.test('the clients of a killed node leave presence maps, and their own keys', async t => {
  const redis = await startRedis(t)
  const [a, b] = await Promise.all([
    startNode(t, redis.address, { config }),
    startNode(t, redis.address, { config }),
  ])
  const present = async gateway => {
    const clients = await Promise.all(Array.from({ length: 10 }, () => RawClient.connected(gateway.ws)))
    for (const client of clients) {
      t.teardown(() => client.socket.terminate())
      await client.subscribe('room:1')
      await client.subscribe('own:1', { type: 1, phase: 2 })
      await client.call('publish', { channel: 'own:1', type: 1, data: 1 })
    }
    return clients.map(({ connect }) => connect.client)
  }
  const [onA, onB] = [await present(a), await present(b)]
  const keys = async channel => [...(await stateOf(b, channel)).keys()].sort()
  const watcher = await RawClient.connected(b.ws)
  t.teardown(() => watcher.socket.terminate())
  await watcher.subscribe('who:room:1', { type: 2, phase: 2 })
  for (const channel of ['who:room:1', 'own:1']) t.same(await keys(channel), [...onA, ...onB].sort())
  a.process.kill('SIGKILL')
  for (const channel of ['who:room:1', 'own:1'])
    await until(
      async () => String(await keys(channel)) === String([...onB].sort()),
      `${channel} without its clients`,
    )
  const removed = new Set()
  while (removed.size < onA.length) {
    const { push } = await watcher.next(({ push }) => push?.pub?.removed)
    removed.add(push.pub.key)
  }
  t.same([...removed].sort(), [...onA].sort(), 'subscribers see them leave')
})

t.test('the keys of clients whose nodes have all died are removed later', async t => {
  const redis = await startRedis(t)
  const a = await startNode(t, redis.address, { config })
  const client = await RawClient.connected(a.ws)
  await client.subscribe('own:1', { type: 1, phase: 2 })
  await client.call('publish', { channel: 'own:1', type: 1, data: 1 })
  a.process.kill('SIGKILL')
  await a.exited
  await until(async () => !(await redis.call('EXISTS', 'halley.registry.places')), 'nobody knows them')
  const b = await startNode(t, redis.address, { config })
  t.equal((await stateOf(b, 'own:1')).size, 1)
  const [owner] = await redis.call('ZRANGE', 'halley.maps.owners', 0, -1)
  // Ten minutes later.
  await redis.call('ZADD', 'halley.maps.owners', 1, owner)
  await until(async () => (await stateOf(b, 'own:1')).size === 0, 'its key to be removed')
  await until(async () => !(await redis.call('EXISTS', 'halley.maps.owners', `halley.owned.${owner}`)))
  const own = await RawClient.connected(b.ws)
  t.teardown(() => own.socket.terminate())
  await own.subscribe('own:1', { type: 1, phase: 2 })
  await own.call('publish', { channel: 'own:1', type: 1, data: 1 })
  const [[, score]] = await redis.call('ZRANGE', 'halley.maps.owners', 0, -1, 'WITHSCORES')
  t.ok(Number(score) > Date.now() + 300_000, `a new lease, ${score}`)
})

t.test('the acknowledged writes of a killed node stay, and its clients recover on another one', async t => {
  const redis = await startRedis(t)
  const [a, b] = await Promise.all([
    startNode(t, redis.address, { config }),
    startNode(t, redis.address, { config }),
  ])
  const balancer = await TcpProxy.start(t, a.port)
  const balanced = a.ws.replace(String(a.port), String(balancer.port))
  const watchers = mapsOf().flatMap(channel => [
    new MapWatcher(t, balanced, channel),
    new MapWatcher(t, balanced, channel),
    new MapWatcher(t, b.ws, channel),
  ])
  await Promise.all(watchers.map(watcher => watcher.ready()))
  let urls = [a.url]
  const load = new MapLoad(t, () => urls, mapsOf())
  await load.acked(300)
  a.process.kill('SIGKILL')
  balancer.targets = [b.port]
  await a.exited
  urls = [b.url]
  await load.acked(200)
  await settle(t, b, load, watchers)
  for (const { channel, syncs, recoveries } of watchers)
    if (!channel.startsWith('ephemeral')) t.match([syncs, recoveries <= 1], [1, true], channel)
})
