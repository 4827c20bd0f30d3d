// Occupied and vacated events of several nodes with Redis, through the deaths of workers, nodes and Redis.

import t from 'tap'
import { startNode } from '../../channels/broker/redis/nodes.js'
import { needsRedis, startCluster, startRedis } from '../../kit/servers/redis.js'
import { pause, until } from '../../kit/wait.js'
import { enter, leave, StateBackend } from './rig.js'
import { channelOf, DELAY, suite } from './suite.js'

t.setTimeout(600_000)
needsRedis(t)

const TTL = 4000

/** @param {any} t @param {string} address @param {StateBackend} backend @param {object} [redis] */
const node = (t, address, backend, redis = {}) =>
  startNode(t, address, {
    workers: 1,
    redis: {
      presence_ttl: `${TTL}ms`,
      channel_state: { vacated_event_delay: `${DELAY}ms`, num_partitions: 4 },
      ...redis,
    },
    config: { channel: channelOf(backend) },
  })

t.test('two nodes', async t => {
  const [redis, backend] = await Promise.all([startRedis(t), StateBackend.start(t)])
  const nodes = [await node(t, redis.address, backend), await node(t, redis.address, backend)]
  const [a, b] = nodes
  await suite(t, backend, nodes)
  t.ok(backend.most <= 4, 'one call of a partition at a time')

  await t.test('a client on each: nothing happens when one leaves', async t => {
    const [one, two] = await Promise.all([enter(t, a, 'room:both'), enter(t, b, 'room:both')])
    await one.close()
    await pause(3 * DELAY)
    t.same(backend.of('room:both'), ['occupied'])
    await two.close()
    await backend.until('room:both', 'occupied vacated')
  })

  await t.test('100 clients join at once: few counts, and the last one', async t => {
    const watcher = await enter(t, a, 'occ:seen:many')
    const from = Date.now()
    const clients = await Promise.all(Array.from({ length: 100 }, () => enter(t, b)))
    await Promise.all(clients.map(client => client.subscribe('seen:many')))
    const counts = []
    do counts.push((await watcher.push('pub')).pub.data.clients)
    while (counts.at(-1) !== 100)
    t.ok(counts.length <= (Date.now() - from) / 500 + 2, String(counts))
  })

  await t.test(
    'the reporting worker dies after the backend has accepted: repeated with the same id',
    async t => {
      const channels = Array.from({ length: 8 }, (_, i) => `room:dies${i}`)
      const repeated = backend.repeated
      let kills = 0
      backend.delay = async () => {
        if (kills++ > 0) return
        // The backend is about to answer 200, and the leader never gets it.
        for (const { workerPids } of nodes) process.kill(workerPids[workerPids.length - 1], 'SIGKILL')
      }
      await Promise.all(channels.map(channel => enter(t, a, channel).catch(() => {})))
      await until(() => backend.repeated > repeated)
      backend.delay = async () => {}
      for (const channel of backend.occupied.filter(name => name.startsWith('room:dies')))
        await backend.until(channel, 'occupied vacated')
      t.same(backend.faults, [])
    },
  )

  await t.test('Redis is away for 10 s: a client that leaves meanwhile is reported later, once', async t => {
    await until(async () => (await enter(t, a)).connect)
    const [stays, leaves] = await Promise.all([enter(t, a, 'room:stays'), enter(t, a, 'room:away')])
    await Promise.all([backend.until('room:stays', 'occupied'), backend.until('room:away', 'occupied')])
    await redis.stop()
    await leaves.close()
    await pause(10_000)
    t.same(backend.of('room:away'), ['occupied'])
    redis.cont()
    await backend.until('room:away', 'occupied vacated')
    await pause(3 * DELAY)
    t.same(backend.of('room:away'), ['occupied', 'vacated'])
    t.same(backend.of('room:stays'), ['occupied'])
    await leave(stays, 'room:stays')
  })

  await t.test('the only node with clients dies: the other one reports it', async t => {
    await enter(t, a, 'room:only')
    await backend.until('room:only', 'occupied')
    a.process.kill('SIGKILL')
    const died = Date.now()
    await backend.until('room:only', 'occupied vacated')
    const ms = Date.now() - died
    // A second for the sweep, and what a busy machine takes.
    t.ok(ms <= TTL + DELAY + 1000 + 1000, `${ms} ms`)
    const [, { time_ms }] = await backend.until('room:only', 'occupied vacated')
    t.ok(time_ms - died <= TTL + 200, 'when the lease ended')
  })

  await t.test('all nodes die: the next one reports it', async t => {
    await enter(t, b, 'room:all')
    await backend.until('room:all', 'occupied')
    b.process.kill('SIGKILL')
    await b.exited
    const c = await node(t, redis.address, backend)
    const back = await enter(t, c, 'room:back')
    await backend.until('room:all', 'occupied vacated')
    await back.close()
    await backend.until('room:back', 'occupied vacated')
    t.same(backend.of('room:all'), ['occupied', 'vacated'])
  })

  t.same(backend.faults, [])
})

t.test('a Redis Cluster', async t => {
  const [cluster, backend] = await Promise.all([startCluster(t), StateBackend.start(t)])
  const options = { sharded_pub_sub_partitions: 5 }
  const nodes = [
    await node(t, cluster.address, backend, options),
    await node(t, cluster.address, backend, options),
  ]
  await suite(t, backend, nodes)
  t.same(backend.faults, [])
})
