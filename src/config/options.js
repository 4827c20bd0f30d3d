// The one table of options, for loading, `config defaults`, `config doc` and docs/config.md.

import { channelOptions, globalChannelOptions } from './options/channel.js'
import { clientOptions } from './options/client.js'
import { consumerMembers, consumerOptions } from './options/consumers.js'
import { live, named, under } from './options/make.js'
import { proxyMembers, proxyOptions } from './options/proxies.js'
import { redisOptions } from './options/redis.js'
import { republishMembers, republishOptions } from './options/republish.js'
import { hooksOptions, lifecycleOptions, serverOptions, statsOptions } from './options/server.js'
import { transportOptions } from './options/transports.js'

/** @import { Option, Tree } from './options/make.js' */

export { channelOptions, consumerMembers, proxyMembers, republishMembers }

export const WITHOUT_NAMESPACE = 'channel.without_namespace'
export const NAMESPACES = 'channel.namespaces'

const namespaces = live([
  named(
    NAMESPACES,
    'Namespaces: objects with a `name` (two or more of `-a-zA-Z0-9_.`) and any of the channel options.',
    channelOptions,
  ),
])

const groups = /** @type {const} */ ([
  serverOptions,
  statsOptions,
  hooksOptions,
  lifecycleOptions,
  redisOptions,
  transportOptions,
  clientOptions,
  globalChannelOptions,
  live(under(WITHOUT_NAMESPACE, channelOptions)),
  namespaces,
  proxyOptions,
  consumerOptions,
  republishOptions,
])

/** Every option, with channel options for channels without namespace. @type {readonly Option[]} */
export const options = Object.freeze(groups.flat())

/**
 * A loaded configuration: nested by sections, every key present, durations in ms, deeply frozen.
 * @typedef {Tree<(typeof groups)[number][number]>} Config
 * @typedef {Tree<(typeof channelOptions)[number]>} ChannelOptions of a namespace, or of channels without one
 * @typedef {Tree<(typeof proxyMembers)[number]>} ProxyOptions
 * @typedef {Config['consumers'][number]} ConsumerOptions
 * @typedef {Config['republish'][number]} RepublishOptions
 * @typedef {Config['engine']['redis']} RedisOptions
 * @typedef {RedisOptions['tls']} ClientTls TLS of connections that Halley opens
 */

/** `client.insecure` is HALLEY_CLIENT_INSECURE. @param {string} path */
export const envName = path => `HALLEY_${path.replace(/[-.]/g, '_').toUpperCase()}`
