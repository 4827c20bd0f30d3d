// The one table of options, for loading, `config defaults`, `config doc` and docs/config.md.

import { channelOptions, globalChannelOptions } from './options/channel.js'
import { clientOptions } from './options/client.js'
import { consumerMembers, consumerOptions } from './options/consumers.js'
import { hooksOptions } from './options/hooks.js'
import { lifecycleOptions } from './options/lifecycle.js'
import { live, named } from './options/make.js'
import { proxyMembers, proxyOptions } from './options/proxies.js'
import { redisOptions } from './options/redis.js'
import { republishMembers, republishOptions } from './options/republish.js'
import { serverOptions } from './options/server.js'
import { statsOptions } from './options/stats.js'
import { transportOptions } from './options/transports.js'

/** @import { Option } from './options/make.js' */

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

/** Every option, with channel options for channels without namespace. @type {readonly Option[]} */
export const options = Object.freeze([
  ...serverOptions,
  ...statsOptions,
  ...hooksOptions,
  ...lifecycleOptions,
  ...redisOptions,
  ...transportOptions,
  ...clientOptions,
  ...globalChannelOptions,
  ...channelOptions.map(option => Object.freeze({ ...option, path: `${WITHOUT_NAMESPACE}.${option.path}` })),
  ...namespaces,
  ...proxyOptions,
  ...consumerOptions,
  ...republishOptions,
])

/** `client.insecure` is HALLEY_CLIENT_INSECURE. @param {string} path */
export const envName = path => `HALLEY_${path.replace(/[-.]/g, '_').toUpperCase()}`
