// A master that sentinels look after is killed. The `sentinel*.slow.js` do more of it.

import t from 'tap'
import { needsRedis, startSentinels } from '../../../kit/servers/redis.js'
import { failover } from './failover.js'

needsRedis(t)

t.test('sentinels', async t => {
  const set = await startSentinels(t, { sentinels: 1 })
  const { servers } = set
  await failover(t, {
    address: set.address,
    masters: async () => [await set.master()],
    replicaOf: async master => /** @type {any} */ (servers.find(server => server !== master)),
    stepDown: () => set.failover(),
    exact: false,
    whole: () => set.whole(),
  })
})
