// Recovery of streams by the official SDK with the Redis engine.

import t from 'tap'
import { drivers, onDriver } from '../../kit/drivers.js'
import { needsRedis, startRedis } from '../../kit/servers/redis.js'
import { testRecovery } from './sdk.js'

needsRedis(t)

for (const driver of drivers)
  t.test(driver, async t => {
    const { address } = await startRedis(t)
    await testRecovery(t, onDriver(driver, { engine: { type: 'redis', redis: { address } } }))
  })
