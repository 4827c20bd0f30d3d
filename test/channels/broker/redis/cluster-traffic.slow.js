import t from 'tap'
import { needsRedis, startCluster } from '../../../kit/servers/redis.js'
import { failovers } from './failover.js'

needsRedis(t)

t.test('redis cluster', async t => {
  // A replica may always take over. A master that is slow on a busy machine must not count as failed.
  const cluster = await startCluster(t, {
    timeout: 4000,
    args: ['--cluster-replica-validity-factor', '0'],
  })
  await failovers(t, {
    address: cluster.address,
    masters: () => cluster.masters(),
    replicaOf: async master => (await cluster.replicasOf(master))[0],
    stepDown: master => cluster.failover(master),
    exact: true,
    whole: () => cluster.whole(),
  })
})
