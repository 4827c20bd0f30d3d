// Rules of maps and shared polls, without the table of options: workers load this file.

import { formatDuration, get, show } from './values.js'

/** @import { Report } from './error.js' */
/** @import { ChannelOptions, Config } from './options.js' */

export const MAP_STREAM_SIZE = 100
export const MAP_STREAM_TTL = 60_000

const NAMESPACES = 'channel.namespaces'
const WITHOUT_NAMESPACE = 'channel.without_namespace'
const MAPS = ['map', 'map_clients', 'map_users']
const EXPIRING = ['ephemeral', 'recoverable']
/** Options, or the starts of their names, without effect in maps and shared polls. */
const OF_STREAMS =
  /^(history_|force_positioning|allow_positioning|(force|allow)_recovery|auto_cache_recover|batch_|keep_latest_|allow_(publish|history)_|publish_proxy_enabled)/

/** @param {string} path @param {ChannelOptions} options @param {Config} config @param {Report} report */
function checkKeyedOptions(path, options, config, report) {
  const { subscription_type: type, map, shared_poll: poll } = options
  const keyOf = (/** @type {string} */ name) => `${path}.${name}`
  const refuse = (/** @type {string[]} */ names, /** @type {string} */ text) =>
    report.refuse(names.map(keyOf), text)
  const isMap = MAPS.includes(type)
  const isPoll = type === 'shared_poll'

  if (isMap || map.mode !== '') checkMode(type, map, refuse)
  if (map.remove_client_on_unsubscribe && !isMap)
    refuse(
      ['map.remove_client_on_unsubscribe', 'subscription_type'],
      'true needs a map: set subscription_type',
    )
  for (const proxy of ['publish', 'remove'])
    if (map.client_key !== '' && get(map, `${proxy}_proxy_enabled`))
      refuse(
        ['map.client_key', `map.${proxy}_proxy_enabled`],
        `${show(map.client_key)} cannot be combined with map.${proxy}_proxy_enabled: the backend decides on keys`,
      )
  checkPages(map, refuse)
  for (const kind of /** @type {const} */ (['map_clients', 'map_users']))
    checkPresencePrefix(keyOf(`${kind}_presence_channel_prefix`), kind, options, config, report)

  if (isPoll && config.shared_poll.hmac_secret_key === '')
    report.refuse(
      ['shared_poll.hmac_secret_key', keyOf('subscription_type')],
      `is empty; ${keyOf('subscription_type')} needs it`,
    )
  if (poll.publish_enabled && poll.mode !== 'versioned')
    refuse(
      ['shared_poll.publish_enabled', 'shared_poll.mode'],
      'true needs shared_poll.mode "versioned": publications have versions',
    )
  if (isMap || isPoll) {
    for (const [name, value] of Object.entries(options))
      if (OF_STREAMS.test(name) && name !== 'batch_max_bytes' && value)
        report.warn(keyOf(name), `has no effect: subscription_type is ${show(type)}`)
    if (isPoll && options.allow_channel_compaction)
      report.warn(keyOf('allow_channel_compaction'), `has no effect: subscription_type is ${show(type)}`)
  } else if (map.mode !== '')
    report.warn(
      keyOf('map.mode'),
      'has no effect without subscription_type "map", "map_clients" or "map_users"',
    )
}

/**
 * @param {string} type @param {ChannelOptions['map']} map
 * @param {(names: string[], text: string) => void} refuse
 */
function checkMode(type, { mode, key_ttl, meta_ttl, stream_ttl, stream_size }, refuse) {
  const ttl = formatDuration
  if (mode === '')
    return refuse(
      ['map.mode', 'subscription_type'],
      `is empty; set it to ephemeral, recoverable or persistent, because subscription_type is ${show(type)}`,
    )
  if (EXPIRING.includes(mode) && key_ttl === 0)
    refuse(['map.key_ttl', 'map.mode'], `is not set; map.mode ${show(mode)} needs it`)
  if (mode === 'persistent') {
    if (key_ttl > 0)
      refuse(
        ['map.key_ttl', 'map.mode'],
        `${ttl(key_ttl)} with map.mode "persistent", where keys do not expire; remove one`,
      )
    if (type === 'map_clients' || type === 'map_users')
      refuse(
        ['map.mode', 'subscription_type'],
        `"persistent" would keep all ${type === 'map_users' ? 'users' : 'clients'} for ever; set ephemeral or recoverable`,
      )
  }
  if (mode === 'ephemeral') {
    for (const [name, value] of Object.entries({ stream_size, stream_ttl, meta_ttl }))
      if (value > 0)
        refuse(
          [`map.${name}`, 'map.mode'],
          `cannot be set with map.mode "ephemeral", which keeps no changes; remove it or set recoverable`,
        )
    return
  }
  if (meta_ttl === 0) return
  const streamTtl = stream_ttl || MAP_STREAM_TTL
  if (meta_ttl < streamTtl)
    refuse(
      ['map.meta_ttl', 'map.stream_ttl'],
      `${ttl(meta_ttl)} is shorter than map.stream_ttl (${ttl(streamTtl)})`,
    )
  if (meta_ttl < key_ttl)
    refuse(['map.meta_ttl', 'map.key_ttl'], `${ttl(meta_ttl)} is shorter than map.key_ttl (${ttl(key_ttl)})`)
}

/** @param {ChannelOptions['map']} map @param {(names: string[], text: string) => void} refuse */
function checkPages({ min_page_size: min, default_page_size: usual, max_page_size: max }, refuse) {
  if (min > max)
    refuse(['map.min_page_size', 'map.max_page_size'], `${min} is above map.max_page_size (${max})`)
  else if (usual > max)
    refuse(['map.default_page_size', 'map.max_page_size'], `${usual} is above map.max_page_size (${max})`)
  else if (usual < min)
    refuse(['map.default_page_size', 'map.min_page_size'], `${usual} is below map.min_page_size (${min})`)
}

/**
 * The namespace of the channels that a prefix makes of others.
 * @param {string} key of the option @param {string} prefix not empty @param {Config['channel']} channel
 * @param {Report} report
 * @returns {{target: ChannelOptions, where: string} | null} `where`: for messages; null: refused
 */
export function namespaceOfPrefix(key, prefix, channel, report) {
  const { namespace_boundary: boundary, private_prefix: secret } = channel
  const from = secret !== '' && prefix.startsWith(secret) ? secret.length : 0
  const refuse = (/** @type {string[]} */ keys, /** @type {string} */ text) => {
    report.refuse([key, ...keys], text)
    return null
  }
  if (channel.patterns && prefix.startsWith('/', from))
    return refuse(['channel.patterns'], `${show(prefix)} starts with /: use a namespace without a pattern`)
  const at = boundary === '' ? from : prefix.indexOf(boundary, from)
  if (at < from) return refuse([], `${show(prefix)} does not contain a namespace and ${show(boundary)}`)
  const name = prefix.slice(from, at)
  const target = name === '' ? channel.without_namespace : channel.namespaces.find(one => one.name === name)
  if (target === undefined) return refuse([NAMESPACES], `unknown namespace ${show(name)}`)
  const where = name === '' ? WITHOUT_NAMESPACE : `namespace ${show(name)}`
  if (channel.patterns && target.pattern !== '')
    report.refuse([key, NAMESPACES], `${where} has a pattern: its channels start with /`)
  return { target, where }
}

/**
 * Clients would be missing from a map that cannot be written.
 * @param {string} key @param {'map_clients' | 'map_users'} kind @param {ChannelOptions} options
 * @param {Config} config @param {Report} report
 */
function checkPresencePrefix(key, kind, options, { channel, client }, report) {
  const prefix = options[`${kind}_presence_channel_prefix`]
  if (prefix === '') return
  const found = namespaceOfPrefix(key, prefix, channel, report)
  if (found === null) return
  const { target, where } = found
  if (target.subscription_type !== kind)
    report.refuse(
      [key, NAMESPACES],
      `needs subscription_type ${show(kind)} in ${where}, which has ${show(target.subscription_type)}`,
    )
  const { presence_update_interval: interval } = client
  if (target.map.key_ttl > 0 && target.map.key_ttl <= interval)
    report.refuse(
      [key, NAMESPACES, 'client.presence_update_interval'],
      `map.key_ttl of ${where} must be longer than client.presence_update_interval (${formatDuration(interval)}), ` +
        'in which its keys are renewed',
    )
}

/** @param {Config} config @param {Report} report */
export function checkMaps(config, report) {
  const { engine, map_broker: broker } = config
  if (broker.type !== '' && broker.type !== engine.type)
    report.refuse(
      ['map_broker.type', 'engine.type'],
      `${show(broker.type)} differs from engine.type ${show(engine.type)}; the engine keeps maps: remove it, or set engine.type`,
    )
  const lists = /** @type {[string, ChannelOptions][]} */ ([
    [WITHOUT_NAMESPACE, config.channel.without_namespace],
    ...config.channel.namespaces.map((options, i) => [`${NAMESPACES}[${i}]`, options]),
  ])
  for (const [path, options] of lists) checkKeyedOptions(path, options, config, report)
}
