// The partitions of a cluster, over real servers.

import { Redis } from 'ioredis'
import t from 'tap'
import { errors } from '../../../../src/base/errors.js'
import { needsRedis, startCluster } from '../../../kit/servers/redis.js'
import { pause, until } from '../../../kit/wait.js'
import { masterOf, moveSlot, publish, refusal, ShardRig, send, slotOf, subscribe } from './cluster-rig.js'

needsRedis(t)

/** There are no replicas: a server that is slow on a busy machine must not count as failed, ms. */
const PATIENT = 15_000
/** A server without sharded pub/sub, as before version 7. */
const PLAIN = ['--rename-command', 'SPUBLISH', '']

for (const sharded of [true, false]) {
  const kind = sharded ? 'sharded pub/sub' : 'plain pub/sub'
  t.test(kind, async t => {
    const cluster = await startCluster(t, { replicas: 0, args: sharded ? [] : PLAIN, timeout: PATIENT })

    t.test(`${kind}: commands, subscriptions and publications reach the right master`, async t => {
      const rig = new ShardRig(t, cluster)
      await rig.whole()
      const { partitions } = rig.shard
      const lines = new Set(partitions.map(({ connection }) => connection))
      t.equal(lines.size, 3, 'one connection to each master')
      t.equal(rig.events.length, partitions.length)
      const slots = new Set()
      for (const [i, partition] of partitions.entries()) {
        t.equal(partition.sharded, sharded)
        t.equal(partition.publishCommand, sharded ? 'spublish' : 'publish')
        const slot = await slotOf(cluster, partition)
        slots.add(slot)
        await send(partition, 'set', partition.key('a', 'b'), `${i}`)
        const master = await cluster.masterOf(slot)
        t.equal(await master.call('GET', partition.key('a', 'b')), `${i}`)
        await subscribe(partition, `news ${i}`)
        await publish(partition, `news ${i}`, `text ${i}`)
        await publish(partition, `nobody ${i}`, 'not for us')
        const topic = partition.key('workers', '')
        await new Promise(resolve => partition.subscribe([topic], resolve))
        await send(partition, partition.publishCommand, topic, `control ${i}`)
      }
      t.ok(slots.size > partitions.length / 2, 'partitions are spread over slots')
      t.same(
        rig.messages,
        partitions.map((_, i) => ({ channel: `news ${i}`, text: `text ${i}` })),
      )
      t.same(
        rig.control,
        partitions.map((_, i) => ({ topic: 'workers.', text: `control ${i}` })),
      )
    })

    t.test(`${kind}: data and subscriptions follow a slot to another master`, async t => {
      const rig = new ShardRig(t, cluster)
      await rig.whole()
      const { partitions } = rig.shard
      for (const [i, partition] of partitions.entries()) await subscribe(partition, `news ${i}`)
      const [moving, ...others] = partitions
      await send(moving, 'set', moving.key('a', 'b'), 'kept')
      const slot = await slotOf(cluster, moving)
      const source = await cluster.masterOf(slot)
      const target = /** @type {any} */ (cluster.servers.find(server => server !== source))
      const before = moving.connection
      await moveSlot(cluster, slot, target, async () => {
        const refused = await refusal(send(moving, 'get', moving.key('a', 'b')))
        t.equal(refused, errors.internal, 'its keys have already moved')
        await publish(moving, 'news 0', 'halfway')
      })
      await rig.reached('up', moving, 2)
      t.equal(rig.count('down', moving), 1)
      t.not(moving.connection, before)
      const texts = rig.messages.map(({ text }) => text)
      t.same(texts, ['halfway'])
      t.equal(await send(moving, 'get', moving.key('a', 'b')), 'kept')
      await publish(moving, 'news 0', 'to nobody')
      await subscribe(moving, 'news 0')
      await publish(moving, 'news 0', 'moved')
      await rig.got('moved')
      for (const [i, partition] of others.entries()) {
        await publish(partition, `news ${i + 1}`, `still ${i}`)
        await rig.got(`still ${i}`)
        t.equal(rig.count('down', partition), 0)
      }
      t.notOk(rig.messages.some(({ text }) => text === 'to nobody'))
      t.equal(rig.messages.length, 2 + others.length)

      // And back: earlier subscriptions there have no effect.
      await moveSlot(cluster, slot, source)
      await rig.reached('up', moving, 3)
      t.equal(moving.connection, before)
      await publish(moving, 'news 0', 'to nobody')
      await subscribe(moving, 'news 0')
      await publish(moving, 'news 0', 'back')
      await rig.got('back')
      t.equal(rig.messages.length, 3 + others.length)
    })

    t.test(`${kind}: no command is lost when a slot moves under traffic`, async t => {
      // On a busy machine a late reply also disturbs a partition.
      const rig = new ShardRig(t, cluster, { partitions: 8, options: { socketTimeout: 20_000 } })
      await rig.whole()
      const [moving, ...others] = rig.shard.partitions
      let ended = false
      let failed = 0
      const traffic = rig.shard.partitions.map(async (partition, i) => {
        for (let n = 0; !ended; n++) {
          try {
            await Promise.all([
              subscribe(partition, `traffic ${i} ${n}`),
              send(partition, 'set', partition.key('traffic', `${n % 50}`), 'x'),
            ])
            const topics = [partition.key('channel', `traffic ${i} ${n - 1}`)]
            await new Promise(resolve => partition.unsubscribe(topics, resolve))
          } catch {
            if (partition === moving) failed++
            else throw new Error(`partition ${i} was disturbed`)
            await new Promise(setImmediate)
          }
        }
      })
      const slot = await slotOf(cluster, moving)
      const source = await cluster.masterOf(slot)
      for (const [i, target] of [...cluster.servers, source].entries()) {
        if ((await cluster.masterOf(slot)) === target) continue
        await moveSlot(cluster, slot, target)
        await until(async () => moving.up && (await masterOf(cluster, moving)) === target)
        // A server that does not know of the move yet may send the partition back once more.
        await until(async () => {
          await subscribe(moving, `at ${i}`)
          await publish(moving, `at ${i}`, `here ${i}`)
          return rig.messages.some(({ text }) => text === `here ${i}`)
        })
      }
      ended = true
      await Promise.all(traffic)
      t.ok(failed > 0)
      for (const partition of others) t.equal(rig.count('down', partition), 0)
    })

    t.test(`${kind}: subscriptions return after all servers restart`, async t => {
      const rig = new ShardRig(t, cluster, { partitions: 8 })
      await rig.whole()
      const { partitions } = rig.shard
      await subscribe(partitions[0], 'news')
      // The start of a blocked process also counts as an outage.
      const begun = rig.lines.length
      const logged = () =>
        rig.lines
          .slice(begun)
          .filter(({ redis }) => redis === 'the cluster')
          .map(({ msg }) => msg)
      await Promise.all(cluster.servers.map(server => server.kill()))
      for (const partition of partitions) {
        await rig.reached('down', partition, 1)
        t.equal(await refusal(send(partition, 'get', partition.key('a', 'b'))), errors.internal)
      }
      t.notOk(rig.shard.up)
      await until(() => logged().includes('the redis cluster is partly unreachable'))
      await Promise.all(cluster.servers.map(server => server.start()))
      await rig.whole()
      for (const partition of partitions) {
        t.equal(rig.count('up', partition), 2)
        t.equal(rig.count('down', partition), 1)
        await send(partition, 'set', partition.key('a', 'b'), 'c')
      }
      await publish(partitions[0], 'news', 'to nobody')
      await subscribe(partitions[0], 'news')
      await publish(partitions[0], 'news', 'again')
      await rig.got('again')
      t.equal(rig.messages.length, 1)
      t.same(logged(), [
        'the redis cluster is partly unreachable',
        'the redis cluster is fully reachable again',
      ])
    })
  })
}

t.test('replies match their commands when a slot moves during an unsubscribe', async t => {
  const cluster = await startCluster(t, { masters: 2, replicas: 0, timeout: PATIENT })
  const rig = new ShardRig(t, cluster)
  await rig.whole()
  const [moving, ...others] = rig.shard.partitions
  const other = /** @type {any} */ (others.find(({ connection }) => connection === moving.connection))
  const names = Array.from({ length: 10 }, (_, i) => `${i}`)
  for (const name of names) {
    await send(other, 'set', other.key('a', name), name)
    await subscribe(moving, name)
  }
  const slot = await slotOf(cluster, moving)
  const source = await cluster.masterOf(slot)
  // Only an empty slot moves immediately.
  await send(moving, 'del', moving.key('branch', 'current'))
  const target = /** @type {any} */ (cluster.servers.find(server => server !== source))
  const id = await target.call('CLUSTER', 'MYID')
  const operator = new Redis({ host: source.host, port: source.port })
  t.teardown(() => operator.disconnect())
  await operator.ping()
  // The slot moves after the commands that block the server, and before it reads later ones.
  const busy = operator.call('EVAL', 'for i = 1, 2e7 do end return 1', 0)
  const moved = operator.call('CLUSTER', 'SETSLOT', slot, 'NODE', id)
  await pause(50)
  moving.unsubscribe(
    names.map(name => moving.key('channel', name)),
    () => {},
  )
  const replies = names.map(name => send(other, 'get', other.key('a', name)).catch(() => 'failed'))
  t.equal(await busy, 1)
  await moved
  await target.call('CLUSTER', 'SETSLOT', slot, 'NODE', id)
  for (const [i, reply] of replies.entries()) t.match(await reply, new RegExp(`^(${i}|failed)$`))
  await rig.whole()
  for (const name of names) t.equal(await send(other, 'get', other.key('a', name)), name)
})
