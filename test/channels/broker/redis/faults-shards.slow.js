// Channels are distributed over two servers, one of which dies.

import t from 'tap'
import { needsRedis, startRedis } from '../../../kit/servers/redis.js'
import { channels, startNode } from './nodes.js'
import { audit, begin, Listener, Load, SdkListener } from './traffic.js'

needsRedis(t)

t.test('killing one of two shards does not affect channels of the other', async t => {
  const shards = await Promise.all([startRedis(t, { aof: 'always' }), startRedis(t, { aof: 'always' })])
  const addresses = shards.map(({ address }) => address)
  const options = { redis: { io_timeout: '5s' }, workers: 1 }
  const [a, b] = await Promise.all([startNode(t, addresses, options), startNode(t, addresses, options)])
  const kept = channels('kept', 24)
  const listeners = [a, b].flatMap(({ ws }) => [
    new Listener(() => ws, kept, { stays: true }),
    new SdkListener(() => ws, kept, { stays: true }),
  ])
  await begin(t, listeners)

  for (const channel of kept) await a.api('publish', { channel, data: { id: 'first' } })
  /** @type {string[][]} */
  const spread = []
  for (const shard of shards) {
    const keys = await shard.call('KEYS', 'halley.stream.*')
    spread.push(keys.map((/** @type {string} */ key) => key.slice('halley.stream.'.length)).sort())
  }
  t.same(spread.flat().sort(), [...kept].sort(), 'each channel is on one shard')
  t.ok(
    spread.every(({ length }) => length >= 4),
    `${spread.map(({ length }) => length).join(' and ')} channels`,
  )

  const loads = spread.map(list => new Load(() => [a.url, b.url], list, { rate: 250, connections: 4 }))
  for (const [i, shard] of shards.entries()) {
    const [dead, alive] = [loads[i], loads[1 - i]]
    await Promise.all([dead.acked(100), alive.acked(100)])
    const before = alive.failed
    await shard.kill()
    await Promise.all([dead.lost(50), alive.acked(200)])
    t.equal(alive.failed, before, 'the other shard is not affected')
    const { error } = await a.api('publish', { channel: spread[i][0], data: { id: 'while it is away' } })
    t.equal(error?.code, 100)
    await shard.restart()
    await Promise.all([dead.acked(100), alive.acked(100)])
    t.equal(alive.failed, before)
  }
  for (const load of loads) {
    await load.stop()
    t.equal(load.unanswered, 0)
    await audit(t, load, listeners, a)
  }
})
