import t from 'tap'
import { needsRedis, startCluster } from '../../kit/servers/redis.js'
import { brokerConformance } from './conformance.js'
import { startRedisRig } from './redis/rig.js'

needsRedis(t)

for (const [name, args] of /** @type {[string, string[]][]} */ ([
  ['redis cluster', []],
  ['redis cluster without sharded pub/sub', ['--rename-command', 'SPUBLISH', '']],
])) {
  t.test(`${name}: the broker`, async t => {
    // Nobody takes over from a server here: on a busy machine one that is slow must not count as gone.
    const { address, servers } = await startCluster(t, { replicas: 0, timeout: 15_000, args })
    brokerConformance(t, t => startRedisRig(t, { address, servers }))
  })
}
