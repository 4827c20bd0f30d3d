// Options of the status of users, `user_status`, and of shared reads, `singleflight`.

import { bool, duration, newStart, newWorkers, oneOrMore, string, withFields } from './make.js'
import { redisConnection } from './redis.js'

/** 100 years, in ms. */
const MAX_EXPIRY = 100 * 365 * 86400 * 1000

export const userStatusOptions = newStart({
  user_status: {
    enabled: bool('Keep when each user was last active and last connected (docs/access.md).'),
    storage_type: string(
      'Where it is kept: `memory` (the primary process, one node) or `redis`. Empty: as `engine.type`. Halley only.',
      { values: ['', 'memory', 'redis'] },
    ),
    redis: {
      reuse_from_engine: bool('Use the servers and the prefix of `engine.redis`, on separate connections.'),
      ...withFields(
        {
          address: oneOrMore('Address, or list of addresses; users are distributed over the list.', {
            default: 'redis://127.0.0.1:6379',
            secret: true,
          }),
          ...redisConnection,
          prefix: string('Prefix of all keys.', { default: 'halley' }),
        },
        { block: true },
      ),
    },
    expire_interval: duration('720h', 'Time after its last update that the status of a user is removed.', {
      min: 1000,
      max: MAX_EXPIRY,
    }),
  },
})

export const singleflightOptions = newWorkers({
  singleflight: {
    enabled: bool(
      'Equal concurrent reads of history, presence and presence statistics in a worker share one read of the engine (docs/scaling.md).',
    ),
  },
})
