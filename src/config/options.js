// The table of options, for loading, `config defaults`, `config doc` and docs/config.md.

import { channelSection, channelOptions as channelTree } from './options/channel.js'
import { clientOptions } from './options/client.js'
import { consumerOptions, consumerMembers as consumerTree } from './options/consumers.js'
import { denialOptions } from './options/denials.js'
import { flatten } from './options/make.js'
import { proxyOptions, proxyMembers as proxyTree } from './options/proxies.js'
import { rateLimitOptions, rateLimitTree } from './options/rate-limits.js'
import { redisOptions } from './options/redis.js'
import { republishOptions, republishMembers as republishTree } from './options/republish.js'
import { hooksOptions, lifecycleOptions, serverOptions, statsOptions } from './options/server.js'
import { transportOptions } from './options/transports.js'
import { singleflightOptions, userStatusOptions } from './options/user-status.js'

/** @import { Option, Tree } from './options/make.js' */

export const WITHOUT_NAMESPACE = 'channel.without_namespace'
export const NAMESPACES = 'channel.namespaces'

export const channelOptions = flatten(channelTree)
export const proxyMembers = flatten(proxyTree)
export const consumerMembers = flatten(consumerTree)
export const republishMembers = flatten(republishTree)
/** Of the blocks in `client.rate_limit`. */
export const rateLimitMembers = flatten(rateLimitTree)

const trees = /** @type {const} */ ([
  serverOptions,
  statsOptions,
  hooksOptions,
  lifecycleOptions,
  redisOptions,
  denialOptions,
  transportOptions,
  clientOptions,
  rateLimitOptions,
  userStatusOptions,
  singleflightOptions,
  channelSection,
  proxyOptions,
  consumerOptions,
  republishOptions,
])

/** Channel options are those without a namespace. @type {readonly Option[]} */
export const options = Object.freeze(trees.flatMap(tree => flatten(tree)))

/**
 * @template U
 * @typedef {(U extends any ? (each: U) => void : never) extends (all: infer I) => void ? I : never} Intersection
 */

/**
 * A loaded configuration: nested by sections, every key present, durations in ms, deeply frozen.
 * @typedef {Tree<Intersection<(typeof trees)[number]>>} Config
 * @typedef {Tree<typeof channelTree>} ChannelOptions
 * @typedef {Tree<typeof proxyTree>} ProxyOptions
 * @typedef {Config['consumers'][number]} ConsumerOptions
 * @typedef {Config['republish'][number]} RepublishOptions
 * @typedef {Config['engine']['redis']} RedisOptions
 * @typedef {RedisOptions['tls']} ClientTls of outgoing connections
 */

/** `client.insecure` is HALLEY_CLIENT_INSECURE. @param {string} path */
export const envName = path => `HALLEY_${path.replace(/[-.]/g, '_').toUpperCase()}`
