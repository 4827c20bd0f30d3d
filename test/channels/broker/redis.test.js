import t from 'tap'
import { needsRedis, startRedis } from '../../kit/servers/redis.js'
import { brokerConformance } from './conformance.js'
import { startRedisRig } from './redis/rig.js'

needsRedis(t)

t.test('redis broker', async t => {
  const server = await startRedis(t)
  brokerConformance(t, t => startRedisRig(t, { address: server.address, servers: [server] }))
})
