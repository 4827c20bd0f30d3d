// Rules over several keys, and over values that a type alone cannot judge, for the complete configuration.

import { existsSync } from 'node:fs'
import { checkConsumers, checkRedisTls } from './consumers.js'
import { createEndpoint } from './jwks-endpoint.js'
import { checkLifecycle } from './lifecycle.js'
import { NAMESPACES, WITHOUT_NAMESPACE } from './options.js'
import { compilePattern } from './pattern.js'
import { readPublicKey } from './pem.js'
import { checkProxies } from './proxies.js'
import { redisShards } from './redis-shards.js'
import { checkRepublish } from './republish.js'
import { formatDuration, show } from './values.js'

/** @import { Refuse, Report } from './error.js' */
/** @import { ChannelOptions, Config, RedisOptions } from './options.js' */

/** @param {string} key @param {string} pattern @param {Refuse} refuse */
function checkPattern(key, pattern, refuse) {
  if (pattern === '') return
  try {
    compilePattern(pattern)
  } catch (error) {
    refuse([key], error.message)
  }
}

/** @param {string} key @param {string} pem @param {'rsa' | 'ec'} type @param {Refuse} refuse */
function checkPem(key, pem, type, refuse) {
  if (pem === '') return
  try {
    readPublicKey(pem, type)
  } catch (error) {
    refuse([key], error.message)
  }
}

/** @param {string} path of the block @param {Config['client']['token']} token @param {Refuse} refuse */
function checkToken(path, token, refuse) {
  for (const claim of /** @type {const} */ (['audience', 'issuer'])) {
    const pattern = /** @type {const} */ (`${claim}_regex`)
    if (token[claim] !== '' && token[pattern] !== '') {
      refuse(
        [`${path}.${claim}`, `${path}.${pattern}`],
        `cannot be combined with ${pattern}; set only one of them`,
      )
    }
    checkPattern(`${path}.${pattern}`, token[pattern], refuse)
  }
  if (!/^[a-zA-Z_]*$/.test(token.user_id_claim)) {
    refuse([`${path}.user_id_claim`], `${show(token.user_id_claim)} may contain only letters and _`)
  }
  checkPem(`${path}.rsa_public_key`, token.rsa_public_key, 'rsa', refuse)
  checkPem(`${path}.ecdsa_public_key`, token.ecdsa_public_key, 'ec', refuse)
  if (token.jwks_public_endpoint === '') return
  try {
    createEndpoint(token.jwks_public_endpoint, token)
  } catch (error) {
    refuse([`${path}.jwks_public_endpoint`], error.message)
  }
}

/** @param {string} path of the options @param {ChannelOptions} options @param {Report} report */
function checkBatches(path, options, report) {
  const { batch_max_size: size, batch_max_delay: delay, batch_flush_latest: latest } = options
  const latestKey = `${path}.batch_flush_latest`
  const tagKey = `${path}.batch_conflate_tag`
  const sizeKey = `${path}.batch_max_size`
  const delayKey = `${path}.batch_max_delay`
  if (options.batch_conflate_tag !== '' && !latest)
    report.refuse([tagKey, latestKey], 'needs batch_flush_latest')
  if (latest && size === 0 && delay === 0)
    report.refuse([latestKey, sizeKey, delayKey], 'true needs batch_max_delay or batch_max_size')
  if (latest && options.allow_tags_filter) {
    report.refuse(
      [latestKey, `${path}.allow_tags_filter`],
      'true cannot be combined with allow_tags_filter: the newest publication may be one that a filter hides',
    )
  }
  if (latest && options.force_recovery) {
    report.warn(latestKey, 'with force_recovery: clients get more publications after a reconnect than live')
  }
  if (size > 0 && delay === 0) {
    report.warn(sizeKey, `${size} without batch_max_delay: a batch that is not full is sent after 1 s`)
  }
}

/**
 * @param {string} path of the options @param {ChannelOptions} options @param {number} globalMetaTtl ms
 * @param {Report} report
 */
function checkChannelOptions(path, options, globalMetaTtl, report) {
  const { refuse } = report
  checkBatches(path, options, report)
  const size = `${path}.history_size`
  const ttl = `${path}.history_ttl`
  const recovery = `${path}.force_recovery`
  if (options.history_size > 0 && options.history_ttl === 0) {
    refuse([size, ttl], `${options.history_size} needs history_ttl too (history is on when both are above 0)`)
  }
  if (options.history_ttl > 0 && options.history_size === 0) {
    refuse(
      [ttl, size],
      `${formatDuration(options.history_ttl)} needs history_size too (history is on when both are above 0)`,
    )
  }
  if (options.history_ttl % 1000 !== 0) {
    refuse([ttl], `${formatDuration(options.history_ttl)} is not a whole number of seconds`)
  }
  const metaTtl = options.history_meta_ttl || globalMetaTtl
  if (options.history_ttl > metaTtl) {
    refuse(
      [ttl, `${path}.history_meta_ttl`, 'channel.history_meta_ttl'],
      `${formatDuration(options.history_ttl)} is longer than history_meta_ttl (${formatDuration(metaTtl)})`,
    )
  }
  if (options.force_recovery && (options.history_size === 0 || options.history_ttl === 0)) {
    refuse([recovery, size, ttl], 'true needs history (history_size and history_ttl)')
  }
  if (options.auto_cache_recover && !(options.force_recovery && options.force_recovery_mode === 'cache')) {
    refuse(
      [`${path}.auto_cache_recover`, recovery, `${path}.force_recovery_mode`],
      'true needs force_recovery and force_recovery_mode "cache"',
    )
  }
  checkPattern(`${path}.channel_regex`, options.channel_regex, refuse)
}

/** @param {Config} config @param {Refuse} refuse */
function checkPersonalChannel(config, refuse) {
  const block = 'client.subscribe_to_user_personal_channel'
  const personal = config.client.subscribe_to_user_personal_channel
  if (!personal.enabled) return
  const key = `${block}.personal_channel_namespace`
  const name = personal.personal_channel_namespace
  const options =
    name === ''
      ? config.channel.without_namespace
      : config.channel.namespaces.find(namespace => namespace.name === name)
  if (options === undefined) refuse([key, NAMESPACES], `there is no namespace ${show(name)}`)
  else if (personal.single_connection && !options.presence) {
    const where = name === '' ? 'channel.without_namespace' : `namespace ${show(name)}`
    refuse([`${block}.single_connection`, key, NAMESPACES], `true needs presence in ${where}`)
  }
}

/** Longest reason in a WebSocket close frame. */
const MAX_REASON_BYTES = 123

/**
 * What SDKs and close frames make of a reason (client protocol).
 * @param {string} reason @returns {string} the fault, '' if there is none
 */
function reasonFault(reason) {
  if (reason === '') return 'is empty'
  if (Buffer.byteLength(reason) > MAX_REASON_BYTES) return `is longer than ${MAX_REASON_BYTES} bytes`
  try {
    JSON.parse(reason)
    return 'is JSON, which SDKs misinterpret'
  } catch {
    return ''
  }
}

/** @param {Config['client']} client @param {Refuse} refuse */
function checkReasons(client, refuse) {
  const key = 'client.connect_code_to_unidirectional_disconnect.transforms'
  for (const { code, to } of client.connect_code_to_unidirectional_disconnect.transforms) {
    const fault = reasonFault(to.reason)
    if (fault !== '') refuse([key], `to.reason of code ${code}: ${show(to.reason)} ${fault}`)
  }
}

/** Transports that a configuration enables one by one; WebSocket is always on. */
export const TRANSPORTS = Object.freeze(
  /** @type {const} */ ([
    'http_stream',
    'sse',
    'poll',
    'uni_websocket',
    'uni_sse',
    'uni_http_stream',
    'uni_poll',
  ]),
)

/** @param {Config} config @param {Refuse} refuse */
function checkPaths(config, refuse) {
  const { admin, http_server: server } = config
  /** @typedef {{handler_prefix: string}} Block */
  const forClients = /** @type {[string, Block, boolean][]} */ ([
    ['websocket', config.websocket, !config.websocket.disabled],
    ...TRANSPORTS.map(name => [name, config[name], config[name].enabled]),
    ['emulation', config.emulation, config.http_stream.enabled || config.sse.enabled || config.poll.enabled],
  ])
  const internal = /** @type {[string, Block, boolean][]} */ ([
    ['http_api', config.http_api, !config.http_api.disabled],
    ['health', config.health, config.health.enabled],
    ['admin', admin, admin.enabled && admin.password !== ''],
    ['prometheus', config.prometheus, config.prometheus.enabled],
  ])
  const ports = server.internal_port === 0 ? [[...forClients, ...internal]] : [forClients, internal]
  for (const blocks of ports) {
    /** @type {Map<string, string>} */
    const taken = new Map()
    for (const [name, { handler_prefix: path }, on] of blocks) {
      if (!on) continue
      const other = taken.get(path)
      const key = `${name}.handler_prefix`
      if (other !== undefined) refuse([key, other], `${show(path)} is also the path of ${other}`)
      taken.set(path, key)
    }
  }
}

/** @param {Config} config @param {Refuse} refuse */
function checkPorts({ http_server: server }, refuse) {
  if (server.internal_port !== 0 && server.internal_port === server.port) {
    refuse(
      ['http_server.internal_port', 'http_server.port'],
      `${server.internal_port} is also http_server.port: choose another internal port`,
    )
  }
}

const REDIS = 'engine.redis'

/**
 * Checks the options of the Redis engine without connecting.
 * @param {RedisOptions} redis @param {Report} report
 */
function checkRedis(redis, report) {
  const keys = ['address', 'cluster_address', 'sentinel_address', 'sentinel_master_name', 'db']
  const shards = redisShards(redis, (key, text) =>
    report.refuse([key, ...keys.map(name => `${REDIS}.${name}`)], text),
  )
  for (const { key, unsupported } of shards) {
    for (const option of unsupported)
      report.warn(key, `Centrifugo option ${option}, which Halley does not support yet; it is ignored`)
  }
  if (!/^[^\s{}]+$/.test(redis.prefix)) {
    const fault = redis.prefix === '' ? 'is empty' : `${show(redis.prefix)} contains a space or a brace`
    report.refuse([`${REDIS}.prefix`], fault)
  }
  if (!/^[!-~]*$/.test(redis.client_name)) {
    report.refuse(
      [`${REDIS}.client_name`],
      `${show(redis.client_name)} contains a space or a character outside ASCII`,
    )
  }
  checkRedisTls(REDIS, redis, shards, report)
}

/** @param {Config} config @param {Report} report */
export function checkRules(config, report) {
  const refuse = report.refuse
  const { client, channel } = config

  if (client.ping_interval <= client.pong_timeout) {
    refuse(
      ['client.ping_interval', 'client.pong_timeout'],
      `${formatDuration(client.ping_interval)} is not above client.pong_timeout (${formatDuration(client.pong_timeout)})`,
    )
  }
  if (client.max_messages_in_frame === 0)
    refuse(['client.max_messages_in_frame'], '0 sends nothing; -1 is no limit')
  checkToken('client.token', client.token, refuse)
  checkToken('client.subscription_token', client.subscription_token, refuse)
  for (const origin of client.allowed_origins) {
    if (/^[a-z][-+.a-z0-9]*:\/\/[^/]*\/.*$/i.test(origin)) {
      report.warn(
        'client.allowed_origins',
        `${show(origin)} never matches: an origin ends after host and port`,
      )
    }
  }
  checkPersonalChannel(config, refuse)
  const { module } = config.hooks
  if (module !== '' && !existsSync(module)) refuse(['hooks.module'], `${module} does not exist`)
  checkReasons(client, refuse)
  checkProxies(config, report)
  checkConsumers(config, report)
  checkPaths(config, refuse)
  checkPorts(config, refuse)
  if (config.engine.type === 'redis') {
    checkRedis(config.engine.redis, report)
    if (config.engine.memory.snapshot_file !== '')
      report.warn('engine.memory.snapshot_file', 'has no effect: engine.type is redis')
  }
  checkLifecycle(config, report)
  checkRepublish(config, report)
  const { poll, uni_poll, shutdown } = config
  if (shutdown.drain >= shutdown.timeout) {
    refuse(
      ['shutdown.drain', 'shutdown.timeout'],
      `${formatDuration(shutdown.drain)} is not below shutdown.timeout (${formatDuration(shutdown.timeout)})`,
    )
  }
  if (uni_poll.timeout > uni_poll.max_timeout) {
    refuse(
      ['uni_poll.timeout', 'uni_poll.max_timeout'],
      `${formatDuration(uni_poll.timeout)} is above uni_poll.max_timeout (${formatDuration(uni_poll.max_timeout)})`,
    )
  }
  if (poll.enabled && poll.session_timeout < client.pong_timeout) {
    refuse(['poll.session_timeout'], 'is below client.pong_timeout: sessions would end between two polls')
  }
  if (config.rpc.ping.enabled && config.rpc.ping.method === '') refuse(['rpc.ping.method'], 'is empty')

  checkChannelOptions(WITHOUT_NAMESPACE, channel.without_namespace, channel.history_meta_ttl, report)
  for (const [i, namespace] of channel.namespaces.entries()) {
    checkChannelOptions(`${NAMESPACES}[${i}]`, namespace, channel.history_meta_ttl, report)
  }
}
