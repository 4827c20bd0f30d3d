import t from 'tap'
import { startCluster } from '../redis/servers.js'
import { brokerConformance } from './conformance.js'
import { startRedisRig } from './redis/rig.js'

for (const [name, args] of /** @type {[string, string[]][]} */ ([
  ['redis cluster', []],
  ['redis cluster without sharded pub/sub', ['--rename-command', 'SPUBLISH', '']],
])) {
  t.test(`${name}: the broker`, async t => {
    const cluster = await startCluster(t, { args })
    const servers = cluster.servers.slice(0, 3)
    brokerConformance(t, t => startRedisRig(t, { address: cluster.address, servers }))
  })
}
