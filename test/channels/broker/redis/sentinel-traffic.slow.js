import t from 'tap'
import { needsRedis, startSentinels } from '../../../kit/servers/redis.js'
import { failovers } from './failover.js'

needsRedis(t)

t.test('redis that sentinels look after', async t => {
  const set = await startSentinels(t)
  const { servers } = set
  await failovers(t, {
    address: set.address,
    masters: async () => [await set.master()],
    replicaOf: async master => /** @type {any} */ (servers.find(server => server !== master)),
    stepDown: () => set.failover(),
    // The old master goes on taking publications until the sentinels have told it.
    exact: false,
    losesAtOnce: false,
    whole: () => set.whole(),
  })
})
