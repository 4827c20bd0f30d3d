import t from 'tap'
import { needsRedis, startCluster } from '../../kit/servers/redis.js'
import { brokerConformance } from './conformance.js'
import { startRedisRig } from './redis/rig.js'

needsRedis(t)

for (const [name, args] of /** @type {[string, string[]][]} */ ([
  ['redis cluster', []],
  ['redis cluster without sharded pub/sub', ['--rename-command', 'SPUBLISH', '']],
])) {
  t.test(`${name}: broker conformance`, async t => {
    // There are no replicas: a server that is slow on a busy machine must not count as failed.
    const { address, servers } = await startCluster(t, { replicas: 0, timeout: 15_000, args })
    brokerConformance(t, t => startRedisRig(t, { address, servers }))
  })
}
