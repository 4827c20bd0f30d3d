// Names of channels and permissions in them (server API).

import { batchOptions } from '../../channels/hub/window.js'
import { compilePattern } from '../../config/pattern.js'
import { NO_HANDLERS } from '../hooks/contract.js'
import { RepublishRules } from './republish-rules.js'

/** @import { ChannelOptions, Config } from '../../config/options.js' */
/** @import { Pattern } from '../../config/pattern.js' */
/** @import { ChannelHandlers, Handlers } from '../hooks/contract.js' */
/** @import { BatchOptions } from '../../channels/hub/window.js' */
/** @import { NamespaceRoutes } from './republish-rules.js' */

/**
 * @typedef {object} Namespace options of its channels; made once per namespace
 * @property {string} name '' for channels without namespace
 * @property {ChannelOptions} options frozen options of the configuration
 * @property {boolean} historyOn
 * @property {number} metaTtl ms, own or global
 * @property {'' | 'json' | 'json_object' | 'binary'} dataFormat own or global
 * @property {Pattern | null} regex channel_regex
 * @property {ChannelHandlers} handlers of hooks
 * @property {Readonly<BatchOptions> | null} batch null: publications are sent at once
 * @property {NamespaceRoutes | null} republish null: its publications go to no republisher
 */

/**
 * @param {string} name @param {ChannelOptions} options @param {Config} config @param {ChannelHandlers} handlers
 * @param {NamespaceRoutes | null} republish
 * @returns {Namespace}
 */
function createNamespace(name, options, { channel, client }, handlers, republish) {
  return Object.freeze({
    name,
    options,
    historyOn: options.history_size > 0 && options.history_ttl > 0,
    metaTtl: options.history_meta_ttl || channel.history_meta_ttl,
    dataFormat: options.publication_data_format || channel.publication_data_format,
    handlers,
    batch: batchOptions(name, options, client.queue_max_size),
    republish,
    regex: options.channel_regex ? compileRegex(name, options.channel_regex) : null,
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

/** The rules of one configuration; a reload makes new ones. */
export class ChannelRules {
  /** @type {Map<string, Namespace>} */
  #namespaces = new Map()
  #default
  #privatePrefix
  #boundary
  #userBoundary
  #userSeparator
  #insecure
  #personalPrefix
  /** Whether a republisher wants the meta of connections. */
  republishesMeta

  /**
   * @param {Config} config of `loadConfig()` @param {Handlers} [handlers] of hooks
   * @throws {Error} naming an invalid channel_regex
   */
  constructor(config, handlers = NO_HANDLERS) {
    const { channel, client } = config
    this.#privatePrefix = /** @type {string} */ (channel.private_prefix)
    this.#boundary = /** @type {string} */ (channel.namespace_boundary)
    this.#userBoundary = /** @type {string} */ (channel.user_boundary)
    this.#userSeparator = /** @type {string} */ (channel.user_separator)
    this.#insecure = Boolean(client.insecure)
    const republish = new RepublishRules(config)
    this.republishesMeta = republish.withMeta
    const create = (/** @type {string} */ name, /** @type {ChannelOptions} */ options) => {
      const start = name === '' ? '' : name + this.#boundary
      const routes = republish.of(name, [start, this.#privatePrefix + start])
      return createNamespace(name, options, config, handlers.channel(name, options), routes)
    }
    this.#default = create('', channel.without_namespace)
    for (const options of channel.namespaces) {
      this.#namespaces.set(options.name, create(options.name, options))
    }
    const personal = client.subscribe_to_user_personal_channel?.personal_channel_namespace
    this.#personalPrefix = (personal ? personal + this.#boundary : '') + this.#userBoundary
  }

  /**
   * Hot path of the server API.
   * @param {string} channel
   * @returns {Namespace | undefined} undefined = unknown (error 102)
   */
  resolve(channel) {
    if (this.#boundary === '') return this.#default
    const from = this.isPrivate(channel) ? this.#privatePrefix.length : 0
    const at = channel.indexOf(this.#boundary, from)
    return at <= from ? this.#default : this.#namespaces.get(channel.slice(from, at))
  }

  /** Whether any channel is batched. */
  get batches() {
    return this.#default.batch !== null || [...this.#namespaces.values()].some(({ batch }) => batch !== null)
  }

  /**
   * The rule for names in client operations: channel_regex for the part after the namespace, or ASCII only.
   * @param {string} channel @param {Namespace} ns
   */
  checkName(channel, ns) {
    return ns.regex === null ? isAscii(channel) : ns.regex.test(this.#rest(channel))
  }

  /** @param {string} channel */
  #rest(channel) {
    if (this.#boundary === '') return channel
    const at = channel.indexOf(this.#boundary, this.isPrivate(channel) ? this.#privatePrefix.length : 0)
    return at === -1 ? channel : channel.slice(at + this.#boundary.length)
  }

  /** Whether subscribing requires a subscription token. @param {string} channel */
  isPrivate(channel) {
    return this.#privatePrefix !== '' && channel.startsWith(this.#privatePrefix)
  }

  /**
   * @param {string} channel @param {Namespace} ns
   * @returns {string[] | undefined} users listed in a user-limited channel; undefined = not user-limited
   */
  userLimited(channel, ns) {
    if (!ns.options.allow_user_limited_channels || this.#userBoundary === '') return undefined
    const at = channel.lastIndexOf(this.#userBoundary)
    if (at === -1) return undefined
    const users = channel.slice(at + this.#userBoundary.length)
    return this.#userSeparator === '' ? [users] : users.split(this.#userSeparator)
  }

  /**
   * The rules for a subscribe without token, as far as the options of the channel say. A handler has precedence.
   * @param {string} channel @param {Namespace} ns @param {string} user '' = anonymous
   */
  maySubscribe(channel, ns, user) {
    if (this.isPrivate(channel)) return false
    if (this.#insecure) return true
    const users = this.userLimited(channel, ns)
    // `room#` lists no user, so it excludes the anonymous one.
    if (users !== undefined) return user !== '' && users.includes(user)
    const { options } = ns
    return options.allow_subscribe_for_client && (user !== '' || options.allow_subscribe_for_anonymous)
  }

  /**
   * The handler that decides a subscribe without token; private and user-limited channels have their own rules.
   * @param {string} channel @param {Namespace} ns
   */
  subscribeHandler(channel, ns) {
    const { subscribe } = ns.handlers
    if (subscribe === null || this.isPrivate(channel)) return null
    return this.userLimited(channel, ns) === undefined ? subscribe : null
  }

  /**
   * Whether a client may have a channel that it names in its connect request, where no handler is asked. None of a
   * namespace with a handler, user-limited ones included.
   * @param {string} channel @param {Namespace} ns @param {string} user '' = anonymous
   */
  maySubscribeUnasked(channel, ns, user) {
    return ns.handlers.subscribe === null && this.maySubscribe(channel, ns, user)
  }

  /** @param {Namespace} ns @param {string} user '' = anonymous @param {boolean} subscribed @returns {boolean} */
  mayPublish({ options }, user, subscribed) {
    if (this.#insecure) return true
    return (
      (options.allow_publish_for_client || (subscribed && options.allow_publish_for_subscriber)) &&
      (user !== '' || options.allow_publish_for_anonymous)
    )
  }

  /**
   * The caller checks the switch `presence` (error 108).
   * @param {Namespace} ns @param {string} user '' = anonymous @param {boolean} subscribed @returns {boolean}
   */
  mayReadPresence({ options }, user, subscribed) {
    if (this.#insecure) return true
    return (
      (options.allow_presence_for_client || (subscribed && options.allow_presence_for_subscriber)) &&
      (user !== '' || options.allow_presence_for_anonymous)
    )
  }

  /**
   * The caller checks the switch `historyOn` (error 108).
   * @param {Namespace} ns @param {string} user '' = anonymous @param {boolean} subscribed @returns {boolean}
   */
  mayReadHistory({ options }, user, subscribed) {
    if (this.#insecure) return true
    return (
      (options.allow_history_for_client || (subscribed && options.allow_history_for_subscriber)) &&
      (user !== '' || options.allow_history_for_anonymous)
    )
  }

  /** @param {string} user @returns {string} channel of each connection of this user, with personal channels on */
  personalChannel(user) {
    return this.#personalPrefix + user
  }
}
