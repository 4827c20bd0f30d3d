import t from 'tap'
import { startRedis } from '../redis/servers.js'
import { brokerConformance } from './conformance.js'
import { startRedisRig } from './redis/rig.js'

t.test('redis broker', async t => {
  const server = await startRedis(t)
  brokerConformance(t, t => startRedisRig(t, { address: server.address, servers: [server] }))
})
