import { batchOptions } from '../../channels/hub/window.js'
import { PatternRoutes, parseChannelPattern, variablesOf } from '../../config/channel-patterns.js'
import { logsChannelStates } from '../../config/channel-states.js'
import { MAP_STREAM_SIZE, MAP_STREAM_TTL } from '../../config/maps.js'
import { compilePattern } from '../../config/pattern.js'
import { NO_HANDLERS } from '../hooks/contract.js'
import { RepublishRules } from './republish-rules.js'

/** @import { ChannelOptions, Config } from '../../config/options.js' */
/** @import { Segment } from '../../config/channel-patterns.js' */
/** @import { Pattern } from '../../config/pattern.js' */
/** @import { ChannelHandlers, Handlers } from '../hooks/contract.js' */
/** @import { BatchOptions } from '../../channels/hub/window.js' */
/** @import { MapRules, Tracking } from '../../channels/broker/contract.js' */
/** @import { NamespaceRoutes } from './republish-rules.js' */

/** @typedef {Pick<ChannelOptions, 'allow_publish_for_client' | 'allow_publish_for_subscriber' | 'allow_publish_for_anonymous'>} PublishOptions */

/** @typedef {'stream' | 'map' | 'map_clients' | 'map_users' | 'shared_poll'} Kind of channel */

/**
 * @typedef {object} Namespace
 * @property {string} name '' for channels without namespace
 * @property {Kind} kind
 * @property {ChannelOptions} options frozen
 * @property {boolean} historyOn of a stream
 * @property {number} metaTtl ms, of the map, the namespace or global
 * @property {Readonly<MapRules> | null} mapRules null: not a map
 * @property {'' | 'json' | 'json_object' | 'binary'} dataFormat of the namespace or global
 * @property {Segment[] | null} pattern null: it has none, or patterns are off
 * @property {Pattern | null} regex
 * @property {ChannelHandlers} handlers
 * @property {Readonly<BatchOptions> | null} batch null: unbatched; only streams have batches
 * @property {NamespaceRoutes | null} republish
 * @property {boolean} targeted publications may exclude clients or be for some users only (global)
 * @property {Tracking | undefined} tracking of its subscribers; undefined: none
 */

/**
 * @param {string} name @param {ChannelOptions} options @param {Config} config @param {ChannelHandlers} handlers
 * @param {NamespaceRoutes | null} republish
 * @returns {Namespace}
 */
function createNamespace(name, options, config, handlers, republish) {
  const { channel, client } = config
  const kind = options.subscription_type || 'stream'
  const isStream = kind === 'stream'
  const mapRules = isStream || kind === 'shared_poll' ? null : mapRulesOf(options.map)
  return Object.freeze({
    name,
    kind,
    options,
    historyOn: isStream && options.history_size > 0 && options.history_ttl > 0,
    metaTtl: mapRules?.metaTtl ?? (options.history_meta_ttl || channel.history_meta_ttl),
    mapRules,
    dataFormat: options.publication_data_format || channel.publication_data_format,
    handlers,
    batch: isStream ? batchOptions(name, options, client.queue_max_size) : null,
    republish,
    targeted: channel.targeted_publications,
    tracking: trackingOf(options, handlers, config),
    pattern: channel.patterns && options.pattern !== '' ? parseChannelPattern(options.pattern) : null,
    regex: options.channel_regex ? compileRegex(name, options.channel_regex) : null,
  })
}

/** 100 years, in ms: without limit. */
const PERMANENT = 100 * 365 * 86400 * 1000

/** @param {ChannelOptions} options @param {ChannelHandlers} handlers @param {Config} config @returns {Tracking | undefined} */
function trackingOf(options, { channelState }, config) {
  const events = options.presence && (channelState.length > 0 || logsChannelStates(config))
  const interval = options.occupancy_channel_prefix === '' ? 0 : options.occupancy_interval
  return events || interval > 0 ? Object.freeze({ events, interval }) : undefined
}

/** @param {ChannelOptions['map']} map @returns {Readonly<MapRules>} */
function mapRulesOf({ mode, key_ttl: keyTtl, stream_size: size, stream_ttl, meta_ttl }) {
  const streamTtl = stream_ttl || MAP_STREAM_TTL
  const metaTtl = mode === 'persistent' ? PERMANENT : Math.max(10 * streamTtl, keyTtl)
  return Object.freeze({
    keyTtl,
    streamSize: mode === 'ephemeral' ? 0 : size || MAP_STREAM_SIZE,
    streamTtl,
    metaTtl: meta_ttl || metaTtl,
  })
}

/** @param {string} name @param {string} pattern */
function compileRegex(name, pattern) {
  try {
    return compilePattern(pattern)
  } catch (error) {
    const where = name === '' ? 'channel.without_namespace' : `channel.namespaces[${name}]`
    throw new Error(`${where}.channel_regex: ${error.message}`)
  }
}

/** @param {string} text */
function isAscii(text) {
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) > 127) return false
  return true
}

/** Channel names and permissions of one configuration (server API). */
export class ChannelRules {
  /** @type {Map<string, Namespace>} */
  #namespaces = new Map()
  /** null: patterns are off. @type {PatternRoutes<Namespace> | null} */
  #routes = null
  #batches
  #tracks = false
  #default
  #privatePrefix
  #boundary
  #userBoundary
  #userSeparator
  #insecure
  #personalPrefix
  /** Whether a republisher includes connection meta. */
  republishesMeta

  /** @param {Config} config @param {Handlers} [handlers] @throws {Error} naming an invalid channel_regex */
  constructor(config, handlers = NO_HANDLERS) {
    const { channel, client } = config
    this.#privatePrefix = channel.private_prefix
    this.#boundary = channel.namespace_boundary
    this.#userBoundary = channel.user_boundary
    this.#userSeparator = channel.user_separator
    this.#insecure = client.insecure
    const republish = new RepublishRules(config)
    this.republishesMeta = republish.withMeta
    const create = (/** @type {string} */ name, /** @type {ChannelOptions} */ options) => {
      const ofPattern = channel.patterns && options.pattern !== ''
      const start = ofPattern ? options.pattern.split(':', 1)[0] : name === '' ? '' : name + this.#boundary
      const routes = republish.of(name, [start, this.#privatePrefix + start])
      return createNamespace(name, options, config, handlers.channel(name, options), routes)
    }
    this.#default = create('', channel.without_namespace)
    this.#batches = this.#default.batch !== null
    this.#tracks = this.#default.tracking !== undefined
    if (channel.patterns) this.#routes = new PatternRoutes()
    for (const options of channel.namespaces) {
      const namespace = create(options.name, options)
      this.#batches ||= namespace.batch !== null
      this.#tracks ||= namespace.tracking !== undefined
      if (namespace.pattern === null) this.#namespaces.set(options.name, namespace)
      else this.#routes?.add(namespace.pattern, namespace)
    }
    const personal = client.subscribe_to_user_personal_channel?.personal_channel_namespace
    this.#personalPrefix = (personal ? personal + this.#boundary : '') + this.#userBoundary
  }

  /** @param {string} channel @returns undefined if unknown (error 102) */
  resolve(channel) {
    const from = this.isPrivate(channel) ? this.#privatePrefix.length : 0
    if (this.#routes !== null && channel.startsWith('/', from)) return this.#routes.find(channel, from)
    if (this.#boundary === '') return this.#default
    const at = channel.indexOf(this.#boundary, from)
    return at <= from ? this.#default : this.#namespaces.get(channel.slice(from, at))
  }

  get batches() {
    return this.#batches
  }

  /** Whether subscribers of any namespace are tracked. */
  get tracks() {
    return this.#tracks
  }

  /** @param {string} channel @returns {Record<string, string>} variables of the pattern that fits it; empty: none */
  variables(channel) {
    const pattern = this.resolve(channel)?.pattern
    if (!pattern) return {}
    return variablesOf(pattern, channel, this.isPrivate(channel) ? this.#privatePrefix.length : 0)
  }

  /**
   * Applies channel_regex after the namespace, or to the whole name with a pattern; else ASCII.
   * @param {string} channel @param {Namespace} ns
   */
  checkName(channel, ns) {
    if (ns.regex === null) return isAscii(channel)
    return ns.regex.test(ns.pattern === null ? this.#rest(channel) : channel)
  }

  /** @param {string} channel */
  #rest(channel) {
    if (this.#boundary === '') return channel
    const at = channel.indexOf(this.#boundary, this.isPrivate(channel) ? this.#privatePrefix.length : 0)
    return at === -1 ? channel : channel.slice(at + this.#boundary.length)
  }

  /** Whether subscribing requires a token. @param {string} channel */
  isPrivate(channel) {
    return this.#privatePrefix !== '' && channel.startsWith(this.#privatePrefix)
  }

  /** @param {string} channel @param {Namespace} ns @returns users of a user-limited channel, else undefined */
  userLimited(channel, ns) {
    if (!ns.options.allow_user_limited_channels || this.#userBoundary === '') return undefined
    const at = channel.lastIndexOf(this.#userBoundary)
    if (at === -1) return undefined
    const users = channel.slice(at + this.#userBoundary.length)
    return this.#userSeparator === '' ? [users] : users.split(this.#userSeparator)
  }

  /** Without token or handler. @param {string} channel @param {Namespace} ns @param {string} user '' = anonymous */
  maySubscribe(channel, ns, user) {
    if (this.isPrivate(channel)) return false
    if (this.#insecure) return true
    const users = this.userLimited(channel, ns)
    // `room#` lists no user, not the anonymous user.
    if (users !== undefined) return user !== '' && users.includes(user)
    const { options } = ns
    return options.allow_subscribe_for_client && (user !== '' || options.allow_subscribe_for_anonymous)
  }

  /** None for private and user-limited channels. @param {string} channel @param {Namespace} ns */
  subscribeHandler(channel, ns) {
    const { subscribe } = ns.handlers
    if (subscribe === null || this.isPrivate(channel)) return null
    return this.userLimited(channel, ns) === undefined ? subscribe : null
  }

  /**
   * Subscriptions in a connect request, which calls no handlers.
   * @param {string} channel @param {Namespace} ns @param {string} user '' = anonymous
   */
  maySubscribeUnasked(channel, ns, user) {
    return ns.handlers.subscribe === null && this.maySubscribe(channel, ns, user)
  }

  /** @param {Namespace} ns @param {string} user '' = anonymous @param {boolean} subscribed */
  mayPublish({ options }, user, subscribed) {
    return this.#mayPublish(options, user, subscribed)
  }

  /** @param {Namespace} ns of a map @param {string} user '' = anonymous @param {boolean} subscribed */
  mayPublishMap({ options }, user, subscribed) {
    return this.#mayPublish(options.map, user, subscribed)
  }

  /** @param {PublishOptions} options @param {string} user @param {boolean} subscribed */
  #mayPublish(options, user, subscribed) {
    if (this.#insecure) return true
    return (
      (options.allow_publish_for_client || (subscribed && options.allow_publish_for_subscriber)) &&
      (user !== '' || options.allow_publish_for_anonymous)
    )
  }

  /** @param {Namespace} ns of a map @param {string} user '' = anonymous @param {boolean} subscribed */
  mayRemoveFromMap({ options: { map } }, user, subscribed) {
    if (this.#insecure) return true
    return (
      (map.allow_remove_for_client || (subscribed && map.allow_remove_for_subscriber)) &&
      (user !== '' || map.allow_remove_for_anonymous)
    )
  }

  /** @param {Namespace} ns @param {string} user '' = anonymous @param {boolean} subscribed */
  mayReadPresence({ options }, user, subscribed) {
    if (this.#insecure) return true
    return (
      (options.allow_presence_for_client || (subscribed && options.allow_presence_for_subscriber)) &&
      (user !== '' || options.allow_presence_for_anonymous)
    )
  }

  /** @param {Namespace} ns @param {string} user '' = anonymous @param {boolean} subscribed */
  mayReadHistory({ options }, user, subscribed) {
    if (this.#insecure) return true
    return (
      (options.allow_history_for_client || (subscribed && options.allow_history_for_subscriber)) &&
      (user !== '' || options.allow_history_for_anonymous)
    )
  }

  /** @param {string} user */
  personalChannel(user) {
    return this.#personalPrefix + user
  }
}
