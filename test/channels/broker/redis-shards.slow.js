import t from 'tap'
import { needsRedis, startRedis } from '../../kit/servers/redis.js'
import { brokerConformance } from './conformance.js'
import { startRedisRig } from './redis/rig.js'

needsRedis(t)

t.test('redis shards: the broker', async t => {
  const servers = await Promise.all([startRedis(t), startRedis(t), startRedis(t)])
  const address = servers.map(({ address }) => address)
  brokerConformance(t, t => startRedisRig(t, { address, servers }))
})
