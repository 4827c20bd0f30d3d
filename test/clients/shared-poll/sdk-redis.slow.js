// Shared polls of the official SDK with the Redis engine.

import t from 'tap'
import { needsRedis, startRedis } from '../../kit/servers/redis.js'
import { testSharedPolls } from './sdk.js'

needsRedis(t)
const { address } = await startRedis(t)
await testSharedPolls(t, 'redis', { workers: 2, engine: { type: 'redis', redis: { address } } })
