// As test/hosts/orders.hosts.js, on one host: a proxy cuts a node from Redis, or all its processes are stopped.

import t from 'tap'
import { freeze } from '../../../hosts/network.js'
import { needsRedis, startCluster, startRedis, startSentinels } from '../../../kit/servers/redis.js'
import { TcpProxy } from '../../../kit/tcp-proxy.js'
import { pause, until } from '../../../kit/wait.js'
import { startNode } from './nodes.js'
import { config, connect, missedOrders } from './orders.js'

needsRedis(t)

/**
 * @param {any} t @param {string | string[]} one address of Redis for the first node
 * @param {string | string[]} other for the second one
 */
const startBoth = (t, one, other) =>
  Promise.all([one, other].map(address => startNode(t, address, { config })))

t.test('a node disconnected for longer than its lease executes missed orders', async t => {
  const servers = await Promise.all([startRedis(t), startRedis(t)])
  for (const shards of [servers.slice(0, 1), servers]) {
    await Promise.all(shards.map(server => server.call('FLUSHALL')))
    const proxies = await Promise.all(shards.map(({ port }) => TcpProxy.start(t, port)))
    const [a, b] = await startBoth(
      t,
      shards.map(({ address }) => address),
      proxies.map(({ port }) => `redis://127.0.0.1:${port}`),
    )
    await missedOrders(t, a, b, () => {
      for (const proxy of proxies) {
        proxy.refuses = true
        proxy.cut()
      }
      return () => {
        for (const proxy of proxies) proxy.refuses = false
      }
    })
    await Promise.all([a, b].map(node => node.stop()))
  }
})

/** One Redis: test/hosts/orders.hosts.js. @type {Record<string, (t: any) => Promise<string | string[]>>} topology -> address */
const topologies = {
  'two shards': async t => (await Promise.all([startRedis(t), startRedis(t)])).map(({ address }) => address),
  'a Redis Cluster': async t => (await startCluster(t, { replicas: 0 })).address,
  Sentinel: async t => (await startSentinels(t)).address,
}

for (const [name, start] of Object.entries(topologies))
  t.test(`a node over ${name} stopped for longer than its lease`, async t => {
    const address = await start(t)
    const [a, b] = await startBoth(t, address, address)
    await missedOrders(t, a, b, () => freeze(b.process.pid))
  })

t.test('a connection whose order is delayed does not close the newer connection of its user', async t => {
  const redis = await startRedis(t)
  const proxy = await TcpProxy.start(t, redis.port)
  const single = { subscribe_to_user_personal_channel: { enabled: true, single_connection: true } }
  const more = { ...config, client: { ...config.client, ...single } }
  const start = (/** @type {string} */ address) =>
    startNode(t, address, { redis: { io_timeout: '20s' }, config: more })
  const [a, b] = await Promise.all([redis.address, `redis://127.0.0.1:${proxy.port}`].map(start))
  // As if `b` were frozen between the reply to its client and the order.
  proxy.keeps = bytes => bytes.includes('"claim"')
  const first = await connect(b, 'single')
  await until(() => proxy.isKeeping)
  const second = await connect(a, 'single')
  // An order that is late by less counts as a concurrent one.
  await pause(1500)
  proxy.release()
  t.equal((await first.closed).code, 3504)
  const third = await connect(b, 'single')
  t.equal((await second.closed).code, 3504)
  t.notOk((await third.subscribe('live:x')).error)
  t.equal(third.ended, null)
})
