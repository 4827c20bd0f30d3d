// A cluster that is changed while in use.

import { once } from 'node:events'
import { createServer } from 'node:net'
import t from 'tap'
import { errors } from '../../../../src/base/errors.js'
import { freePort } from '../../../kit/ports.js'
import { needsRedis, serverArgs, spawnRedis, startCluster, startRedis } from '../../../kit/servers/redis.js'
import { until } from '../../../kit/wait.js'
import { masterOf, moveSlot, publish, refusal, ShardRig, send, slotOf, subscribe } from './cluster-rig.js'

needsRedis(t)

/**
 * Nobody takes over from a server where this is said: on a busy machine one that is slow must not count as gone, ms.
 */
const PATIENT = 15_000
const PARTIAL = ['--cluster-require-full-coverage', 'no']

/** @returns {Promise<import('../../../kit/servers/redis.js').RedisServer>} not in a cluster yet */
function startAlone(t) {
  return spawnRedis(t, async (port, dir) => [
    ...serverArgs({ port, dir }),
    ...['--cluster-enabled', 'yes', '--cluster-port', `${await freePort()}`],
    ...['--cluster-node-timeout', `${PATIENT}`],
    ...PARTIAL,
  ])
}

// Each test has its own cluster.
t.jobs = 2

t.test('a new server takes all slots and becomes the only one', async t => {
  const cluster = await startCluster(t, { masters: 1, replicas: 0, timeout: PATIENT, args: PARTIAL })
  const [old] = cluster.servers
  const rig = new ShardRig(t, cluster, { partitions: 4 })
  await rig.whole()
  const { partitions } = rig.shard
  for (const partition of partitions) await subscribe(partition, 'news')
  const joined = await startAlone(t)
  const [, busPort] = await joined.call('CONFIG', 'GET', 'cluster-port')
  await joined.call('CLUSTER', 'SET-CONFIG-EPOCH', 7)
  await old.call('CLUSTER', 'MEET', joined.host, joined.port, busPort)
  cluster.servers.push(joined)
  await until(async () => (await cluster.nodes(joined)).filter(({ failed }) => !failed).length === 2)
  await cluster.healthy()
  for (const [i, partition] of partitions.entries()) {
    await moveSlot(cluster, await slotOf(cluster, partition), joined)
    await rig.reached('up', partition, 2)
    await subscribe(partition, 'news')
    await publish(partition, 'news', `text ${i}`)
    await rig.got(`text ${i}`)
    t.ok(partition.connection?.name.endsWith(`:${joined.port}`))
  }
  t.equal(rig.messages.length, partitions.length)
  const forgotten = await old.call('CLUSTER', 'MYID')
  await old.kill()
  await joined.call('CLUSTER', 'FORGET', forgotten)
  // It is queried what it knows of the cluster, and so are others: there is nothing to be had at the address of the
  // configuration.
  await joined.restart()
  for (const partition of partitions) {
    await rig.reached('up', partition, 3)
    await send(partition, 'set', partition.key('a', 'b'), 'c')
  }
})

t.test('slots lose their master', async t => {
  const cluster = await startCluster(t, { masters: 3, replicas: 0, timeout: PATIENT })
  const cover = (/** @type {string} */ value) =>
    Promise.all(
      cluster.servers.map(server => server.call('CONFIG', 'SET', 'cluster-require-full-coverage', value)),
    )

  t.test('other slots stay usable', async t => {
    await cover('no')
    const rig = new ShardRig(t, cluster, { partitions: 6 })
    await rig.whole()
    const [lone, ...others] = rig.shard.partitions
    for (const partition of rig.shard.partitions) await subscribe(partition, 'news')
    const slot = await slotOf(cluster, lone)
    const master = await masterOf(cluster, lone)
    await master.call('CLUSTER', 'DELSLOTS', slot)
    await refusal(send(lone, 'get', lone.key('a', 'b')))
    await rig.reached('down', lone, 1)
    t.equal(lone.connection, null)
    t.equal(await refusal(send(lone, 'get', lone.key('a', 'b'))), errors.internal)
    t.notOk(rig.shard.up)
    for (const [i, partition] of others.entries()) {
      await publish(partition, 'news', `text ${i}`)
      await rig.got(`text ${i}`)
    }
    await master.call('CLUSTER', 'ADDSLOTS', slot)
    await rig.reached('up', lone, 2)
    await rig.whole()
    for (const partition of others) t.equal(rig.count('down', partition), 0)
  })

  t.test('subscriptions stay while the cluster is down', async t => {
    const rig = new ShardRig(t, cluster, { partitions: 6 })
    await rig.whole()
    const [lone, ...others] = rig.shard.partitions
    for (const partition of rig.shard.partitions) await subscribe(partition, 'news')
    const slot = await slotOf(cluster, lone)
    const master = await masterOf(cluster, lone)
    await cover('yes')
    for (const server of cluster.servers) await server.call('CLUSTER', 'DELSLOTS', slot)
    await until(async () => (await refusal(send(others[0], 'get', others[0].key('a', 'b')))) !== null)
    await until(() => !rig.shard.up)
    // That master must be seen without its slot: after a refused command the cluster is queried again.
    await rig.reached('down', lone, 1)
    await master.call('CLUSTER', 'ADDSLOTS', slot)
    await rig.whole()
    await cluster.healthy()
    for (const [i, partition] of others.entries()) {
      await until(() => publish(partition, 'news', `text ${i}`).then(() => true))
      await rig.got(`text ${i}`)
      t.equal(rig.count('down', partition), 0)
    }
  })
})

t.test('a master that was reset is no longer used', async t => {
  const cluster = await startCluster(t, { timeout: PATIENT })
  const rig = new ShardRig(t, cluster, { partitions: 6 })
  await rig.whole()
  const [first] = rig.shard.partitions
  const master = await masterOf(cluster, first)
  const [replica] = await cluster.replicasOf(master)
  await master.call('FLUSHALL')
  await master.call('CLUSTER', 'RESET', 'HARD')
  cluster.servers = cluster.servers.filter(server => server !== master)
  await rig.reached('down', first, 1)
  t.equal(await refusal(send(first, 'get', first.key('a', 'b'))), errors.internal)
  // The others do not elect another master as long as one responds.
  await replica.call('CLUSTER', 'FAILOVER', 'TAKEOVER')
  await rig.reached('up', first, 2)
  t.ok(first.connection?.name.endsWith(`:${replica.port}`))
  await until(() => send(first, 'set', first.key('a', 'b'), 'c').then(() => true))
  await rig.whole()
})

t.test('the end of a short outage is logged', async t => {
  const cluster = await startCluster(t, { timeout: PATIENT, args: PARTIAL })
  const rig = new ShardRig(t, cluster, { partitions: 6 })
  await rig.whole()
  const [first] = rig.shard.partitions
  const master = await masterOf(cluster, first)
  const [replica] = await cluster.replicasOf(master)
  const begun = rig.lines.length
  await master.kill()
  await replica.call('CLUSTER', 'FAILOVER', 'TAKEOVER')
  await rig.reached('up', first, 2)
  await rig.whole()
  const lines = () => rig.lines.slice(begun).map(({ redis, msg }) => `${redis}: ${msg}`)
  t.ok(lines().includes(`127.0.0.1:${master.port}: redis is unreachable`))
  await until(() => lines().includes('the cluster: the redis cluster is fully reachable again'))
})

t.test('an unusable cluster is logged once with its reason', async t => {
  const lone = await startRedis(t)
  const locked = await startCluster(t, { masters: 1, replicas: 0, timeout: PATIENT, password: 'secret' })
  /** @type {[any, string, RegExp][]} */
  const cases = [
    [lone, '', /cluster support disabled/],
    [locked.servers[0], 'wrong', /WRONGPASS/],
    [locked.servers[0], '', /NOAUTH/],
  ]
  for (const [server, password, reason] of cases) {
    const rig = new ShardRig(t, /** @type {any} */ ({ servers: [server] }), { options: { password } })
    await until(() => rig.lines.length > 0)
    t.match(rig.lines[0], { redis: 'the cluster', partitions: '16 of 16', reason })
    t.equal(rig.lines.length, 1)
  }
  const rig = new ShardRig(t, locked, { options: { password: 'secret' } })
  await rig.whole()
  t.same(rig.lines, [])
})

t.test('an outage is logged with its reason', async t => {
  const server = createServer(socket => {
    socket.on('error', () => {})
    socket.once('data', () => setTimeout(() => socket.end('-NOAUTH Authentication required.\r\n'), 1000))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  const rig = new ShardRig(t, /** @type {any} */ ({ servers: [{ host: '127.0.0.1', port }] }))
  await until(() => rig.lines.length > 0)
  t.match(rig.lines[0], { redis: 'the cluster', partitions: '16 of 16', reason: /NOAUTH/ })
})
