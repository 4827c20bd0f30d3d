// Streams of a Redis Cluster and of a Redis with sentinels: masters change, and all entries arrive.

import { setTimeout as wait } from 'node:timers/promises'
import { Redis, Cluster as RedisCluster } from 'ioredis'
import t from 'tap'
import { needsRedis, startCluster, startSentinels } from '../../../kit/servers/redis.js'
import { until } from '../../../kit/wait.js'
import { startConsumer } from './rig.js'

needsRedis(t)

t.setTimeout(120_000)

const LOT = 20
/** Time after which a batch counts as lost, ms. */
const LOST_MS = 15_000
/** Each stream is on another one of three masters. */
const STREAMS = { a: 15_495, b: 3300, c: 7365 }

/** @param {any} t @param {object} connection options */
const start = (t, connection) =>
  startConsumer(t, 'redis_stream', {
    ...connection,
    streams: Object.keys(STREAMS),
    consumer_group: 'group',
    visibility_timeout: '1s',
    io_timeout: '2s',
  })

/**
 * Entries of one lot in each stream reach their handler.
 * @param {any} rig @param {Redis | RedisCluster} client @param {number} lot
 */
async function arrive(rig, client, lot) {
  for (const key of Object.keys(STREAMS))
    for (let i = 0; i < LOT; i++) await client.xadd(key, '*', 'payload', `${key} ${lot} ${i}`)
  const wanted = lot * LOT * Object.keys(STREAMS).length
  await until(() => new Set(rig.messages.map(({ text }) => text)).size === wanted)
}

t.test('a cluster', async t => {
  const cluster = await startCluster(t)
  const [{ host, port }] = cluster.servers
  const client = new RedisCluster([{ host, port }])
  t.teardown(() => client.disconnect())
  const addresses = cluster.servers.map(server => `${server.host}:${server.port}`).join(',')
  const rig = await start(t, { cluster_address: [addresses] })
  await arrive(rig, client, 1)
  t.same(rig.failures, [])
  await cluster.failover(await cluster.masterOf(STREAMS.a))
  await arrive(rig, client, 2)
  const master = await cluster.masterOf(STREAMS.b)
  await master.kill()
  await cluster.replaced(master)
  await arrive(rig, client, 3)
  t.ok(rig.failures.length > 0)
  await rig.consumer.stop()
})

t.test('sentinels', async t => {
  const set = await startSentinels(t)
  // An old master may still be announced, or accept entries and lose them: then the batch is sent again.
  const lotArrives = async lot => {
    for (let arrived = false; !arrived; ) {
      const { host, port } = await set.master()
      const client = new Redis({
        host,
        port,
        disableClientInfo: true,
        maxRetriesPerRequest: 0,
        retryStrategy: () => null,
      })
      client.on('error', () => {})
      const lost = wait(LOST_MS, false, { ref: false })
      const all = arrive(rig, client, lot).then(
        () => true,
        () => false,
      )
      arrived = await Promise.race([all, lost])
      client.disconnect()
    }
  }
  const rig = await start(t, { address: set.address })
  await lotArrives(1)
  t.same(rig.failures, [])
  await set.failover()
  await lotArrives(2)
  const master = await set.master()
  await set.whole()
  await master.kill()
  await set.replaced(master)
  await lotArrives(3)
  t.ok(rig.failures.length > 0)
  await rig.consumer.stop()
})
