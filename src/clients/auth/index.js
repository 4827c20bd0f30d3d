// Authentication and permissions of clients: tokens in tokens.js, keys in keys.js and jwks.js, channels in
// channel-rules.js; comparison of secrets in secret.js.
// It imports config (patterns, keys, JWKS URLs), protocol (payloads) and errors; it knows no session and no transport.
// It promises: nothing of a token counts before its signature is checked, and hostile input costs linear time.
// Answers are synchronous unless keys must be fetched.

import { ChannelRules } from './channel-rules.js'
import { Tokens } from './tokens.js'

/** @import { Config } from '../../config/options.js' */
/** @import { Handlers } from '../hooks/contract.js' */
/** @import { TokensOptions } from './tokens.js' */

/** @typedef {{rules: ChannelRules, tokens: Tokens}} Auth what one configuration allows; a reload makes a new one */

/**
 * @param {Config} config of `loadConfig()` @param {TokensOptions} [options] `jwks`: keys that are known already
 * @param {Handlers} [handlers] of hooks
 * @returns {Auth}
 * @throws {Error} naming the invalid option
 */
export const createAuth = (config, options, handlers) => ({
  rules: new ChannelRules(config, handlers),
  tokens: new Tokens(config, options),
})
