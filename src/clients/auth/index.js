// Authentication and permissions of clients. Imports config, protocol and errors, no session or transport. Claims are
// used only after the signature check; malicious input costs linear time. Synchronous unless keys must be fetched.

import { ChannelRules } from './channel-rules.js'
import { Tokens } from './tokens.js'

/** @import { Config } from '../../config/options.js' */
/** @import { Handlers } from '../hooks/contract.js' */
/** @import { TokensOptions } from './tokens.js' */

/** @typedef {{rules: ChannelRules, tokens: Tokens}} Auth of one configuration */

/** @param {Config} config @param {TokensOptions} [options] @param {Handlers} [handlers] @throws {Error} */
export const createAuth = (config, options, handlers) => ({
  rules: new ChannelRules(config, handlers),
  tokens: new Tokens(config, options),
})
