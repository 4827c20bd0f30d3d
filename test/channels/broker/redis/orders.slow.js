// As test/hosts/orders.hosts.js, on one host: a proxy cuts a node from Redis, or all its processes are stopped.

import t from 'tap'
import { freeze } from '../../../hosts/network.js'
import { needsRedis, startCluster, startRedis, startSentinels } from '../../../kit/servers/redis.js'
import { TcpProxy } from '../../../kit/tcp-proxy.js'
import { startNode } from './nodes.js'
import { config, missedOrders } from './orders.js'

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

/** @type {Record<string, (t: any) => Promise<string | string[]>>} topology -> address */
const topologies = {
  'one Redis': async t => (await startRedis(t)).address,
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
