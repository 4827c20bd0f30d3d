// Rules for the options of the lifecycle log.

import { checkTls } from './pem.js'
import { redisShards } from './redis-shards.js'

/** @import { Report } from './error.js' */
/** @import { Config, RedisOptions } from './options.js' */

const BLOCK = 'lifecycle.redis'

/** @param {Config} config @returns {boolean} whether the lifecycle log has a sink */
export function logsLifecycle({ lifecycle: { file, webhook, redis } }) {
  return file.path !== '' || webhook.url !== '' || redis.stream
}

/**
 * The Redis of the lifecycle log.
 * @param {Pick<Config, 'engine' | 'lifecycle'>} config
 * @returns {RedisOptions | null} null: there is none
 */
export function lifecycleRedis({ engine, lifecycle: { redis } }) {
  if (redis.address === '') return engine.type === 'redis' ? engine.redis : null
  // The credentials of the engine are not for another server.
  const own = { user: '', password: '', db: 0, sentinel_user: '', sentinel_password: '' }
  return { ...engine.redis, ...own, address: [redis.address], cluster_address: [], sentinel_address: [] }
}

/** @param {string} text @returns {string} the fault, '' if there is none */
function urlFault(text) {
  let url
  try {
    url = new URL(text)
  } catch {
    return 'is not an address like https://host/path'
  }
  return ['http:', 'https:'].includes(url.protocol) ? '' : 'does not begin with http:// or https://'
}

/** @param {string} secret @returns {string} the fault, '' if there is none */
function secretFault(secret) {
  if (secret === '') return 'is empty: a batch must be signed'
  if (!secret.startsWith('whsec_')) return ''
  return /^whsec_[\w+/-]+={0,2}$/.test(secret) ? '' : 'has no base64 after whsec_'
}

/**
 * @param {Config} config
 * @param {Report} report
 */
export function checkLifecycle(config, report) {
  const { webhook, redis } = config.lifecycle
  if (webhook.url !== '') {
    const fault = urlFault(webhook.url)
    if (fault !== '') report.refuse(['lifecycle.webhook.url'], fault)
    const badSecret = secretFault(webhook.secret)
    if (badSecret !== '') report.refuse(['lifecycle.webhook.secret', 'lifecycle.webhook.url'], badSecret)
  }
  if (redis.stream && redis.address === '' && config.engine.type !== 'redis')
    report.refuse(
      [`${BLOCK}.stream`, `${BLOCK}.address`, 'engine.type'],
      `true needs ${BLOCK}.address or engine.type redis`,
    )
  if (redis.address === '') return
  const own = /** @type {RedisOptions} */ (lifecycleRedis(config))
  const shards = redisShards(own, (_key, text) => report.refuse([`${BLOCK}.address`], text))
  if (shards.some(({ tls }) => tls)) checkTls('engine.redis.tls', own.tls, report)
}
