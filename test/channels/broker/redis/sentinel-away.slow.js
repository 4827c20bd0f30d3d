// Sentinels that are away: a file of its own, because one that starts on a busy machine may distrust its clock for
// half a minute.

import t from 'tap'
import { needsRedis, startSentinels } from '../../../kit/servers/redis.js'
import { until } from '../../../kit/wait.js'
import { refusal, send } from './cluster-rig.js'
import { joinSentinels } from './sentinel-rig.js'

needsRedis(t)

t.test('the gateway survives a restart of all sentinels during a failover', async t => {
  const set = await startSentinels(t, { sentinels: 1 })
  const { events, partition, ups, port } = joinSentinels(t, set)
  await ups(1)
  const master = await set.master()
  const [sentinel] = set.sentinels
  await sentinel.kill()
  t.equal(await port(), master.port, 'an open connection does not need them')
  t.same(events, ['up'])
  await master.kill()
  await until(() => events.length === 2)
  t.ok(await refusal(send(partition, 'get', 'a')))
  await sentinel.start()
  await ups(2)
  t.not(await port(), master.port)
})
