/** @import { Report } from './error.js' */
/** @import { Config } from './options.js' */

export const STATUS_REDIS = 'user_status.redis'

/** @param {Pick<Config, 'user_status' | 'engine'>} config @returns {boolean} whether the status of users is in Redis */
export const usesStatusRedis = ({ user_status: { enabled, storage_type }, engine }) =>
  enabled && (storage_type || engine.type) === 'redis'

/** @param {Config} config @param {Report} report */
export function checkUserStatus({ user_status, engine }, report) {
  const { enabled, storage_type, redis } = user_status
  if (!enabled) return
  const where = storage_type || engine.type
  const servers = `${STATUS_REDIS}.address`
  if (where === 'memory' && engine.type === 'redis')
    report.refuse(['user_status.storage_type', 'engine.type'], '"memory" is not shared by nodes; use "redis"')
  if (where === 'redis' && redis.reuse_from_engine && engine.type !== 'redis')
    report.refuse([`${STATUS_REDIS}.reuse_from_engine`, 'engine.type'], 'true needs engine.type "redis"')
  // Of a configuration for Centrifugo, where Redis is the only storage.
  const given =
    redis.cluster_address.length > 0 ||
    redis.sentinel_address.length > 0 ||
    redis.address.join() !== 'redis://127.0.0.1:6379'
  if (where === 'memory' && given)
    report.warn(servers, 'has no effect: the status of users is kept in memory; see user_status.storage_type')
}
