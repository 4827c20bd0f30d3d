// Rules over several keys, and over values that types cannot check.

import { existsSync } from 'node:fs'
import { checkChannelPatterns } from './channel-patterns.js'
import { checkChannelStates } from './channel-states.js'
import { checkConsumers, checkRedisTls } from './consumers.js'
import { checkDenials, denialRedisBlocks } from './denials.js'
import { createEndpoint } from './jwks-endpoint.js'
import { checkLifecycle } from './lifecycle.js'
import { checkMaps } from './maps.js'
import { NAMESPACES, WITHOUT_NAMESPACE } from './options.js'
import { compilePattern } from './pattern.js'
import { readPublicKey } from './pem.js'
import { checkProxies } from './proxies.js'
import { checkRateLimits, REDIS_LIMITS } from './rate-limits.js'
import { redisShards } from './redis-shards.js'
import { checkRepublish } from './republish.js'
import { checkUserStatus, STATUS_REDIS, usesStatusRedis } from './user-status.js'
import { formatDuration, get, show } from './values.js'

/** @import { Refuse, Report } from './error.js' */
/** @import { ChannelOptions, Config, RedisOptions } from './options.js' */
/** @import { RedisConnection } from './redis-shards.js' */

/**
 * @param {string} key @param {string} value '': not checked
 * @param {(value: string) => unknown} parse throws an error; its message follows the key
 * @param {Refuse} refuse
 */
function checkValue(key, value, parse, refuse) {
  if (value === '') return
  try {
    parse(value)
  } catch (error) {
    refuse([key], error.message)
  }
}

/** @param {string} path @param {Config['client']['token']} token @param {Refuse} refuse */
function checkToken(path, token, refuse) {
  for (const claim of /** @type {const} */ (['audience', 'issuer'])) {
    const pattern = /** @type {const} */ (`${claim}_regex`)
    if (token[claim] !== '' && token[pattern] !== '') {
      const text = `cannot be combined with ${pattern}; set only one of them`
      refuse([`${path}.${claim}`, `${path}.${pattern}`], text)
    }
    checkValue(`${path}.${pattern}`, token[pattern], compilePattern, refuse)
  }
  if (!/^[a-zA-Z_]*$/.test(token.user_id_claim))
    refuse([`${path}.user_id_claim`], `${show(token.user_id_claim)} may contain only letters and _`)
  const { rsa_public_key: rsa, ecdsa_public_key: ec, jwks_public_endpoint: jwks } = token
  checkValue(`${path}.rsa_public_key`, rsa, pem => readPublicKey(pem, 'rsa'), refuse)
  checkValue(`${path}.ecdsa_public_key`, ec, pem => readPublicKey(pem, 'ec'), refuse)
  checkValue(`${path}.jwks_public_endpoint`, jwks, url => createEndpoint(url, token), refuse)
}

/** @param {string} path @param {ChannelOptions} options @param {number} globalMetaTtl ms @param {Report} report */
function checkChannelOptions(path, options, globalMetaTtl, report) {
  const keyOf = (/** @type {string} */ name) => `${path}.${name}`
  const refuse = (/** @type {(keyof ChannelOptions)[]} */ names, /** @type {string} */ text) =>
    report.refuse(names.map(keyOf), text)
  const { batch_max_size, batch_max_delay, history_size, history_ttl, force_recovery } = options
  const latest = options.batch_flush_latest
  const on = '(history is on when both are above 0)'
  const ttl = formatDuration(history_ttl)

  if (options.batch_conflate_tag !== '' && !latest)
    refuse(['batch_conflate_tag', 'batch_flush_latest'], 'needs batch_flush_latest')
  if (latest && batch_max_size === 0 && batch_max_delay === 0) {
    const keys = /** @type {const} */ (['batch_flush_latest', 'batch_max_size', 'batch_max_delay'])
    refuse([...keys], 'true needs batch_max_delay or batch_max_size')
  }
  if (latest && options.allow_tags_filter) {
    const why = 'a filter may hide the newest publication'
    refuse(
      ['batch_flush_latest', 'allow_tags_filter'],
      `true cannot be combined with allow_tags_filter: ${why}`,
    )
  }
  if (options.require_server_tags_filter && (latest || options.subscription_type === 'shared_poll')) {
    const other = latest ? 'batch_flush_latest' : 'subscription_type'
    refuse(
      ['require_server_tags_filter', other],
      `true cannot be combined with ${other}, which excludes such filters`,
    )
  }
  if (latest && force_recovery) {
    const text = 'with force_recovery: recovery sends publications that live delivery skips'
    report.warn(keyOf('batch_flush_latest'), text)
  }
  if (batch_max_size > 0 && batch_max_delay === 0) {
    const text = `${batch_max_size} without batch_max_delay: incomplete batches are sent after 1 s`
    report.warn(keyOf('batch_max_size'), text)
  }

  if (history_size > 0 && history_ttl === 0)
    refuse(['history_size', 'history_ttl'], `${history_size} needs history_ttl too ${on}`)
  if (history_ttl > 0 && history_size === 0)
    refuse(['history_ttl', 'history_size'], `${ttl} needs history_size too ${on}`)
  if (history_ttl % 1000 !== 0) refuse(['history_ttl'], `${ttl} is not a whole number of seconds`)
  const metaTtl = options.history_meta_ttl || globalMetaTtl
  if (history_ttl > metaTtl) {
    const text = `${ttl} is longer than history_meta_ttl (${formatDuration(metaTtl)})`
    report.refuse([keyOf('history_ttl'), keyOf('history_meta_ttl'), 'channel.history_meta_ttl'], text)
  }
  if (force_recovery && (history_size === 0 || history_ttl === 0)) {
    const text = 'true needs history (history_size and history_ttl)'
    refuse(['force_recovery', 'history_size', 'history_ttl'], text)
  }
  if (options.auto_cache_recover && !(force_recovery && options.force_recovery_mode === 'cache')) {
    const text = 'true needs force_recovery and force_recovery_mode "cache"'
    refuse(['auto_cache_recover', 'force_recovery', 'force_recovery_mode'], text)
  }
  if (options.keep_latest_publication && options.allowed_delta_types.length === 0)
    report.warn(keyOf('keep_latest_publication'), 'has no effect without allowed_delta_types')
  if (options.cache_empty_proxy_enabled && options.force_recovery_mode !== 'cache') {
    const text = 'true needs force_recovery_mode "cache"'
    refuse(['cache_empty_proxy_enabled', 'force_recovery_mode'], text)
  }
  checkValue(keyOf('channel_regex'), options.channel_regex, compilePattern, report.refuse)
}

/** @param {Config} config @param {Refuse} refuse */
function checkExcludedSenders({ channel }, refuse) {
  const namespaces = channel.namespaces.map((namespace, i) => [`${NAMESPACES}[${i}]`, namespace])
  for (const [path, options] of [[WITHOUT_NAMESPACE, channel.without_namespace], ...namespaces]) {
    const { publish_exclude_sender, subscription_type } = /** @type {ChannelOptions} */ (options)
    if (!publish_exclude_sender) continue
    const key = `${path}.publish_exclude_sender`
    if (!channel.targeted_publications)
      refuse([key, 'channel.targeted_publications'], 'true needs channel.targeted_publications')
    if (!['', 'stream'].includes(subscription_type))
      refuse([key, `${path}.subscription_type`], `true needs a stream, not ${show(subscription_type)}`)
  }
}

/** @param {Config} config @param {Refuse} refuse */
function checkPersonalChannel({ client, channel }, refuse) {
  const block = 'client.subscribe_to_user_personal_channel'
  const personal = client.subscribe_to_user_personal_channel
  if (!personal.enabled) return
  const key = `${block}.personal_channel_namespace`
  const name = personal.personal_channel_namespace
  const options =
    name === '' ? channel.without_namespace : channel.namespaces.find(namespace => namespace.name === name)
  const where = name === '' ? WITHOUT_NAMESPACE : `namespace ${show(name)}`
  if (options === undefined) refuse([key, NAMESPACES], `unknown namespace ${show(name)}`)
  else if (channel.patterns && options.pattern !== '') {
    refuse([key, NAMESPACES], `${where} has a pattern: no personal channel fits it`)
  } else if (options.require_server_tags_filter) {
    refuse([key, NAMESPACES], `${where} has require_server_tags_filter: a personal channel has no filter`)
  } else if (!['', 'stream'].includes(options.subscription_type)) {
    const type = show(options.subscription_type)
    refuse([key, NAMESPACES], `needs subscription_type "stream" in ${where}, which has ${type}`)
  } else if (personal.single_connection && !options.presence) {
    refuse([`${block}.single_connection`, key, NAMESPACES], `true needs presence in ${where}`)
  }
}

const MAX_REASON_BYTES = 123

/** Limits of SDKs and close frames (client protocol); '' if it fits. @param {string} reason */
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

/** Disabled by default, unlike WebSocket. */
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
  const emulated = config.http_stream.enabled || config.sse.enabled || config.poll.enabled
  /** @typedef {[block: keyof Config, on: boolean]} Endpoint */
  const forClients = /** @type {Endpoint[]} */ ([
    ['websocket', !config.websocket.disabled],
    ...TRANSPORTS.map(name => [name, config[name].enabled]),
    ['emulation', emulated],
  ])
  /** @type {Endpoint[]} */
  const internal = [
    ['http_api', !config.http_api.disabled],
    ['health', config.health.enabled],
    ['admin', admin.enabled && admin.password !== ''],
    ['prometheus', config.prometheus.enabled],
  ]
  const ports = server.internal_port === 0 ? [[...forClients, ...internal]] : [forClients, internal]
  for (const blocks of ports) {
    /** @type {Map<string, string>} */
    const taken = new Map()
    for (const [name, on] of blocks) {
      if (!on) continue
      const key = `${name}.handler_prefix`
      const path = /** @type {string} */ (get(config, key))
      const other = taken.get(path)
      if (other !== undefined) refuse([key, other], `${show(path)} is also the path of ${other}`)
      taken.set(path, key)
    }
  }
}

/**
 * Never connects.
 * @param {string} path @param {RedisConnection & Pick<RedisOptions, 'prefix'>} redis @param {Report} report
 */
function checkRedis(path, redis, report) {
  const keys = ['address', 'cluster_address', 'sentinel_address', 'sentinel_master_name', 'db']
  const fault = (/** @type {string} */ key, /** @type {string} */ text) =>
    report.refuse([key, ...keys.map(name => `${path}.${name}`)], text)
  const shards = redisShards(redis, fault, path)
  for (const { key, unsupported } of shards) {
    for (const option of unsupported)
      report.warn(key, `Centrifugo option ${option}, which Halley does not support yet; it is ignored`)
  }
  if (!/^[^\s{}]+$/.test(redis.prefix)) {
    const fault = redis.prefix === '' ? 'is empty' : `${show(redis.prefix)} contains a space or a brace`
    report.refuse([`${path}.prefix`], fault)
  }
  if (!/^[!-~]*$/.test(redis.client_name)) {
    const fault = `${show(redis.client_name)} contains a space or a character outside ASCII`
    report.refuse([`${path}.client_name`], fault)
  }
  checkRedisTls(path, redis, shards, report)
}

/** @type {[key: string, wrong: (a: number, b: number) => boolean, relation: string, other: string][]} */
const DURATIONS = [
  ['client.ping_interval', (a, b) => a <= b, 'is not above', 'client.pong_timeout'],
  ['shutdown.drain', (a, b) => a >= b, 'is not below', 'shutdown.timeout'],
  ['uni_poll.timeout', (a, b) => a > b, 'is above', 'uni_poll.max_timeout'],
]

/** @param {Config} config @param {Report} report */
export function checkRules(config, report) {
  const { refuse } = report
  const { client, channel, engine, http_server: server, poll, rpc } = config
  const { module } = config.hooks

  for (const [key, wrong, relation, other] of DURATIONS) {
    const [a, b] = [Number(get(config, key)), Number(get(config, other))]
    if (wrong(a, b)) refuse([key, other], `${formatDuration(a)} ${relation} ${other} (${formatDuration(b)})`)
  }
  if (client.max_messages_in_frame === 0)
    refuse(['client.max_messages_in_frame'], '0 would send nothing; use -1 for no limit')
  checkToken('client.token', client.token, refuse)
  checkToken('client.subscription_token', client.subscription_token, refuse)
  for (const origin of client.allowed_origins.filter(text => /^[a-z][-+.a-z0-9]*:\/\/[^/]*\/.*$/i.test(text)))
    report.warn('client.allowed_origins', `${show(origin)} never matches: an origin has no path`)
  checkPersonalChannel(config, refuse)
  if (module !== '' && !existsSync(module)) refuse(['hooks.module'], `${module} does not exist`)
  checkReasons(client, refuse)
  checkProxies(config, report)
  checkConsumers(config, report)
  checkPaths(config, refuse)
  if (server.internal_port !== 0 && server.internal_port === server.port) {
    const text = `${server.internal_port} is also http_server.port; use another port`
    refuse(['http_server.internal_port', 'http_server.port'], text)
  }
  if (engine.type === 'redis') {
    checkRedis('engine.redis', engine.redis, report)
    if (engine.memory.snapshot_file !== '')
      report.warn('engine.memory.snapshot_file', 'has no effect: engine.type is redis')
  }
  checkRateLimits(config, report)
  const { enabled, redis } = client.rate_limit.redis_user_command
  if (enabled && !redis.reuse_from_engine) checkRedis(REDIS_LIMITS, redis, report)
  checkUserStatus(config, report)
  if (usesStatusRedis(config) && !config.user_status.redis.reuse_from_engine)
    checkRedis(STATUS_REDIS, config.user_status.redis, report)
  checkDenials(config, report)
  for (const path of denialRedisBlocks(config))
    checkRedis(path, /** @type {any} */ (get(config, path)), report)
  checkLifecycle(config, report)
  checkRepublish(config, report)
  checkExcludedSenders(config, refuse)
  checkMaps(config, report)
  checkChannelStates(config, report)
  checkChannelPatterns(config, report)
  if (poll.enabled && poll.session_timeout < client.pong_timeout)
    refuse(['poll.session_timeout'], 'is below client.pong_timeout: sessions would end between two polls')
  if (rpc.ping.enabled && rpc.ping.method === '') refuse(['rpc.ping.method'], 'is empty')
  checkChannelOptions(WITHOUT_NAMESPACE, channel.without_namespace, channel.history_meta_ttl, report)
  for (const [i, namespace] of channel.namespaces.entries())
    checkChannelOptions(`${NAMESPACES}[${i}]`, namespace, channel.history_meta_ttl, report)
}
