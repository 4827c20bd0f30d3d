// Maps in Redis whose master fails: with Sentinel, in a cluster, and on several shards.

import t from 'tap'
import { startNode } from '../../channels/broker/redis/nodes.js'
import { topologyOf } from '../../channels/broker/redis/sentinel-rig.js'
import { needsRedis, startCluster, startRedis, startSentinels } from '../../kit/servers/redis.js'
import { until } from '../../kit/wait.js'
import { MapLoad, MapWatcher, namespaces, settle, stateOf } from './traffic.js'

needsRedis(t)
t.setTimeout(300_000)

const channels = namespaces.flatMap(({ name }) => [1, 2, 3].map(n => `${name}:${n}`))

/** @param {any} t @param {string | string[]} address */
async function start(t, address) {
  const options = { workers: 1, config: { channel: { namespaces } }, redis: { io_timeout: '3s' } }
  const nodes = await Promise.all([startNode(t, address, options), startNode(t, address, options)])
  return {
    node: nodes[0],
    load: (t, first) =>
      new MapLoad(t, () => nodes.map(({ url }) => url), channels, { first, lanes: 1, pauseMs: 20 }),
    watchers: async t => {
      const all = nodes.flatMap(({ ws }) => channels.map(channel => new MapWatcher(t, ws, channel)))
      await Promise.all(all.map(watcher => watcher.ready()))
      return all
    },
  }
}

/** @param {any} server */
const written = async server => Number((await server.info('replication')).master_repl_offset)
/** @param {any} replica */
const promoted = replica => until(async () => (await replica.info('replication')).role === 'master')

/** @param {any} t @param {{address: string, masters: () => Promise<any[]>, replicaOf: (master: any) => Promise<any>, whole: () => Promise<void>}} topology */
async function failovers(t, { address, masters, replicaOf, whole }) {
  const { node, load, watchers } = await start(t, address)

  await t.test('a master whose replica has everything is killed: nothing is lost', async t => {
    const all = await watchers(t)
    const before = load(t, 0)
    await before.acked(300)
    await before.stop()
    const [master] = await masters()
    const replica = await replicaOf(master)
    const end = await written(master)
    await until(async () => (await written(replica)) >= end)
    await master.kill()
    await promoted(replica)
    const after = load(t, 1)
    await after.acked(300)
    await settle(t, node, after, all)
    for (const channel of channels) t.same(before.missing(channel, await stateOf(node, channel)), [], channel)
    for (const { channel, syncs } of all)
      if (!channel.startsWith('ephemeral')) t.equal(syncs, 1, `${channel}: recovered from its position`)
    await master.start()
    await whole()
  })

  await t.test('a master is killed under traffic: clients have what is in the maps', async t => {
    const all = await watchers(t)
    const writes = load(t, 2)
    await writes.acked(300)
    const [master] = await masters()
    const replica = await replicaOf(master)
    await master.kill()
    await promoted(replica)
    await writes.acked(300)
    await settle(t, node, writes, all, { lossy: true })
    await master.start()
    await whole()
  })
}

t.test('sentinels', async t => failovers(t, topologyOf(await startSentinels(t))))

t.test('a cluster', async t => {
  const cluster = await startCluster(t, {
    timeout: 4000,
    args: ['--cluster-replica-validity-factor', '0'],
  })
  await failovers(t, {
    address: cluster.address,
    masters: () => cluster.masters(),
    replicaOf: async master => (await cluster.replicasOf(master))[0],
    whole: () => cluster.whole(),
  })
})

t.test('one of two shards is killed and restarted: nothing is lost', async t => {
  const shards = await Promise.all([startRedis(t, { aof: 'always' }), startRedis(t, { aof: 'always' })])
  const { node, load, watchers } = await start(
    t,
    shards.map(({ address }) => address),
  )
  const all = await watchers(t)
  const writes = load(t, 0)
  for (const shard of shards) {
    await writes.acked(200)
    await shard.kill()
    const failed = writes.errors.get(100) ?? 0
    await until(() => (writes.errors.get(100) ?? 0) > failed + 5, 'writes to fail')
    await writes.acked(50)
    await shard.start()
  }
  await writes.acked(300)
  await settle(t, node, writes, all)
  t.same(
    [...writes.errors.keys()].filter(code => code !== 100),
    [],
  )
})
