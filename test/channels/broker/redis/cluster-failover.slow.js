// A cluster whose masters fail or step down.

import t from 'tap'
import { errors } from '../../../../src/base/errors.js'
import { needsRedis, startCluster } from '../../../kit/servers/redis.js'
import { until } from '../../../kit/wait.js'
import { masterOf, publish, refusal, ShardRig, send, subscribe } from './cluster-rig.js'

needsRedis(t)

/** @typedef {import('../../../kit/servers/redis.js').RedisServer} RedisServer */

/**
 * @param {ShardRig} rig
 * @param {RedisServer} server
 * @returns {import('../../../../src/channels/broker/redis/partition.js').Partition[]} that it is in charge of, as the shard sees it
 */
const at = (rig, { port }) =>
  rig.shard.partitions.filter(({ connection }) => connection?.name.endsWith(`:${port}`))

/**
 * Every partition works at its current master, and only partitions that were away were reported as down.
 * @param {any} t
 * @param {import('../../../kit/servers/cluster.js').Cluster} cluster
 * @param {ShardRig} rig
 * @param {import('../../../../src/channels/broker/redis/partition.js').Partition[]} moved
 * @param {string} text
 */
async function works(t, cluster, rig, moved, text) {
  await rig.whole()
  for (const [i, partition] of rig.shard.partitions.entries()) {
    if (moved.includes(partition)) {
      // A new master may not know yet that the cluster is up.
      await until(() => subscribe(partition, 'news').then(() => true))
    } else t.equal(rig.count('down', partition), 0, `partition ${i} had no outage`)
    await until(() => publish(partition, 'news', `${text} ${i}`).then(() => true))
    await rig.got(`${text} ${i}`)
    t.equal(rig.messages.filter(message => message.text === `${text} ${i}`).length, 1)
    // Servers learn of a new master one after another.
    await until(async () => at(rig, await masterOf(cluster, partition)).includes(partition))
  }
}

/** @param {any} t @param {import('../../../kit/servers/cluster.js').Cluster} cluster @param {object} [options] */
async function subscribed(t, cluster, options = {}) {
  const rig = new ShardRig(t, cluster, { partitions: 12, ...options })
  await rig.whole()
  for (const partition of rig.shard.partitions) await subscribe(partition, 'news')
  return rig
}

// Failovers mostly wait: both clusters run at the same time.
t.jobs = 2

for (const sharded of [true, false]) {
  const kind = sharded ? 'sharded pub/sub' : 'plain pub/sub'
  t.test(`${kind}: masters fail`, async t => {
    const cluster = await startCluster(t, {
      // A master that is slow on a busy machine must not count as failed.
      timeout: 4000,
      args: [
        ...['--cluster-require-full-coverage', 'no'],
        ...(sharded ? [] : ['--rename-command', 'SPUBLISH', '']),
      ],
    })
    const seeds = cluster.servers

    t.test(`${kind}: a replica takes over when its master steps down`, async t => {
      const rig = await subscribed(t, cluster, { seeds })
      const [master] = await cluster.masters()
      const moved = at(rig, master)
      t.ok(moved.length > 0)
      await send(moved[0], 'set', moved[0].key('a', 'b'), 'kept')
      const replica = await cluster.failover(master)
      for (const partition of moved) await rig.reached('up', partition, 2)
      t.same(at(rig, replica), moved)
      t.equal(await send(moved[0], 'get', moved[0].key('a', 'b')), 'kept')
      await works(t, cluster, rig, moved, 'after')
      await cluster.whole()
    })

    t.test(`${kind}: a replica takes over when its master is killed`, async t => {
      const rig = await subscribed(t, cluster, { seeds })
      const [, master] = await cluster.masters()
      const moved = at(rig, master)
      // An interrupted start also counts as an outage.
      const begun = rig.lines.length
      await master.kill()
      for (const partition of moved) await rig.reached('down', partition, 1)
      t.equal(await refusal(send(moved[0], 'get', moved[0].key('a', 'b'))), errors.internal)
      await works(t, cluster, rig, moved, 'after')
      const lines = rig.lines.slice(begun).filter(({ redis }) => redis === 'the cluster')
      t.same(
        lines.map(({ msg }) => msg),
        ['the redis cluster is partly unreachable', 'the redis cluster is fully reachable again'],
      )
      t.equal(lines[0].partitions, `${moved.length} of 12`)
      await master.start()
      await cluster.whole()
      await works(t, cluster, rig, moved, 'and later')
    })

    t.test(`${kind}: a frozen master is replaced and returns as a replica`, async t => {
      const rig = await subscribed(t, cluster, { seeds, options: { socketTimeout: 3000 } })
      const [, , master] = await cluster.masters()
      const moved = at(rig, master)
      master.stop()
      // A request to it detects the failure.
      send(moved[0], 'get', moved[0].key('a', 'b')).catch(() => {})
      await works(t, cluster, rig, moved, 'after')
      master.cont()
      await cluster.whole()
      await works(t, cluster, rig, moved, 'and later')
      for (const partition of moved) t.equal(rig.count('up', partition), 2)
    })
  })
}
