// The master of sentinels is killed. The `sentinel*.slow.js` files have more tests.

import t from 'tap'
import { needsRedis, startSentinels } from '../../../kit/servers/redis.js'
import { failover } from './failover.js'
import { topologyOf } from './sentinel-rig.js'

needsRedis(t)

t.test('sentinels', async t => failover(t, topologyOf(await startSentinels(t, { sentinels: 1 }))))
