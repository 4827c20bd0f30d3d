import { checkTls } from './pem.js'
import { redisShards } from './redis-shards.js'

/** @import { Report } from './error.js' */
/** @import { Config, RedisOptions } from './options.js' */

const BLOCK = 'lifecycle.redis'

/** Has a sink. @param {Config} config */
export function logsLifecycle({ lifecycle: { file, webhook, redis } }) {
  return file.path !== '' || webhook.url !== '' || redis.stream
}

/** @param {Pick<Config, 'engine' | 'lifecycle'>} config @returns {RedisOptions | null} */
export function lifecycleRedis({ engine, lifecycle: { redis } }) {
  if (redis.address === '') return engine.type === 'redis' ? engine.redis : null
  // Never send the engine's credentials to another server.
  const own = { user: '', password: '', db: 0, sentinel_user: '', sentinel_password: '' }
  return { ...engine.redis, ...own, address: [redis.address], cluster_address: [], sentinel_address: [] }
}

/** @param {string} text @returns the fault, or '' */
function urlFault(text) {
  if (!URL.canParse(text)) return 'is not a URL like https://host/path'
  return /^https?:$/.test(new URL(text).protocol) ? '' : 'does not begin with http:// or https://'
}

/** @param {string} secret @returns the fault, or '' */
function secretFault(secret) {
  if (secret === '') return 'is required: batches are signed'
  if (!secret.startsWith('whsec_')) return ''
  return /^whsec_[\w+/-]+={0,2}$/.test(secret) ? '' : 'must have base64 after whsec_'
}

/** @param {Config} config @param {Report} report */
export function checkLifecycle(config, report) {
  const { webhook, redis } = config.lifecycle
  if (webhook.url !== '') {
    const faults = { url: urlFault(webhook.url), secret: secretFault(webhook.secret) }
    if (faults.url !== '') report.refuse(['lifecycle.webhook.url'], faults.url)
    if (faults.secret !== '')
      report.refuse(['lifecycle.webhook.secret', 'lifecycle.webhook.url'], faults.secret)
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
