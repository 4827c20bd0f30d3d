// Map subscriptions of the official SDK with the Redis engine.

import t from 'tap'
import { drivers, onDriver } from '../../kit/drivers.js'
import { needsRedis, startRedis } from '../../kit/servers/redis.js'
import { testMaps } from './sdk.js'

needsRedis(t)

for (const driver of drivers)
  t.test(driver, async t => {
    const { address } = await startRedis(t)
    await testMaps(t, `redis, ${driver}`, onDriver(driver, { engine: { type: 'redis', redis: { address } } }))
  })
