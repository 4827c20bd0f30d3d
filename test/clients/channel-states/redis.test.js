// Occupied and vacated events, and counts of subscribers, with the Redis engine.

import t from 'tap'
import { startNode } from '../../channels/broker/redis/nodes.js'
import { needsRedis, startRedis } from '../../kit/servers/redis.js'
import { eventually } from '../../kit/wait.js'
import { enter, StateBackend } from './rig.js'
import { channelOf, DELAY, suite } from './suite.js'

needsRedis(t)

t.test('the Redis engine', async t => {
  const [redis, backend] = await Promise.all([startRedis(t), StateBackend.start(t)])
  const gateway = await startNode(t, redis.address, {
    redis: { presence_ttl: '4s', channel_state: { vacated_event_delay: `${DELAY}ms`, num_partitions: 3 } },
    config: { channel: channelOf(backend) },
  })
  await suite(t, backend, [gateway])
  t.ok(backend.most <= 3, 'one call of a partition at a time')

  await t.test('a worker dies: its clients leave with its lease, unless they come back', async t => {
    const clients = await Promise.all(Array.from({ length: 4 }, (_, i) => enter(t, gateway, `room:w${i}`)))
    await Promise.all(clients.map((_, i) => backend.until(`room:w${i}`, 'occupied')))
    process.kill(gateway.workerPids[0], 'SIGKILL')
    process.kill(gateway.workerPids[1], 'SIGKILL')
    await Promise.all(clients.map(({ closed }) => closed))
    await gateway.line(() => gateway.workerPids.length >= 4)
    await enter(t, gateway, 'room:w0')
    for (const channel of ['room:w1', 'room:w2', 'room:w3']) await backend.until(channel, 'occupied vacated')
    t.same(backend.of('room:w0'), ['occupied'])
  })

  t.same(backend.faults, [])
  const waiting = async () =>
    (await redis.call('KEYS', 'halley.state.*')).filter(key => /\.(leaving|due|counts)$/.test(key))
  t.same(await eventually(waiting, keys => keys.length === 0), [], 'nothing is left in Redis')
})
