import { redisShards } from './redis-shards.js'

/** @import { Report } from './error.js' */
/** @import { Config } from './options.js' */

export const DENIALS = /** @type {const} */ (['user_block', 'token_revoke', 'user_tokens_invalidate'])

/** @param {Config} config @returns {string[]} paths of the `redis` blocks in use */
export const denialRedisBlocks = config =>
  DENIALS.filter(name => {
    const { storage_type, redis } = config[name]
    return storage_type === 'redis' && !redis.reuse_from_engine
  }).map(name => `${name}.redis`)

/** @param {Config} config @param {Report} report */
export function checkDenials(config, { refuse }) {
  for (const name of DENIALS) {
    const { storage_type, redis } = config[name]
    if (storage_type !== 'redis') continue
    const path = `${name}.redis`
    if (redis.reuse_from_engine) {
      if (config.engine.type !== 'redis')
        refuse([`${path}.reuse_from_engine`, 'engine.type'], 'true needs engine.type "redis"')
      continue
    }
    // Faults of addresses are reported by the check of the block.
    const count = redisShards(redis, () => {}, path).length
    const keys = ['address', 'cluster_address', 'sentinel_address'].map(key => `${path}.${key}`)
    if (count > 1) refuse(keys, `has ${count} addresses; exactly one is possible`)
  }
}
