// Token buckets of users in Redis, for rate limits over all nodes.

import { parseTargets } from './address.js'
import { Placement } from './placement.js'
import { rateTake } from './scripts.js'

/** @import { Logger } from 'pino' */
/** @import { RateStore } from '../contract.js' */
/** @import { RedisConnection } from '../../../config/redis-shards.js' */

/** Of a cluster, without an option: the default of the engine. */
const PARTITIONS = 128

/**
 * @param {RedisConnection & {prefix: string, sharded_pub_sub_partitions?: number}} redis
 * @param {string} block its path in the configuration @param {Logger} log
 * @returns {RateStore} connecting
 */
export function openRateStore(redis, block, log) {
  const placement = new Placement(
    parseTargets(redis, block),
    { prefix: redis.prefix, partitions: redis.sharded_pub_sub_partitions ?? PARTITIONS },
    { up() {}, down() {}, channelMessage() {}, controlMessage() {} },
    log,
  )
  placement.connect()
  return {
    take(user, limit, buckets, done) {
      const partition = placement.of(user)
      partition.run(rateTake, [partition.key('rate', user)], [limit, ...buckets], (error, reply) =>
        done(error, reply === 1),
      )
    },
    close: () => placement.close(),
  }
}
