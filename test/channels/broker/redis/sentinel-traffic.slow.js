import t from 'tap'
import { needsRedis, startSentinels } from '../../../kit/servers/redis.js'
import { failovers } from './failover.js'
import { topologyOf } from './sentinel-rig.js'

needsRedis(t)

t.test('sentinels', async t => failovers(t, topologyOf(await startSentinels(t))))
