import { disconnects } from '../errors.js'

/** @import { SubOptions } from './claims.js' */
/** @import { createTokens } from './tokens.js' */

/** @type {Map<string, any>} */
const NO_SUBS = new Map()

/**
 * @typedef {object} Identity of a connecting client
 * @property {string} user '' = anonymous
 * @property {number} expireAt unix s, 0 = never
 * @property {string} [info] raw JSON
 * @property {Map<string, SubOptions>} subs channels of the token
 */

/**
 * The ways to authenticate, in their order (server API, section 8).
 * @param {object} parts
 * @param {any} parts.client the `client` block
 * @param {ReturnType<typeof createTokens>} parts.tokens
 * @param {string | undefined} token
 * @param {string} trusted user of the trusted header, '' = none
 * @returns {Identity | Promise<Identity>}
 * @throws disconnects.badRequest (a token is required), and the errors of `tokens.connect`
 */
export function identify({ client, tokens }, token, trusted) {
  if (token) return tokens.connect(token, !client.insecure)
  if (client.allow_anonymous_connect_without_token || client.insecure)
    return { user: '', expireAt: 0, subs: NO_SUBS }
  if (trusted !== '') return { user: trusted, expireAt: 0, subs: NO_SUBS }
  throw disconnects.badRequest
}
