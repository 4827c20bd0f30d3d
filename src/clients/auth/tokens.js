// The checks of connection and subscription tokens, in their order (server API).

import { disconnects, errors } from '../../base/errors.js'
import { createEndpoint } from '../../config/jwks-endpoint.js'
import { compilePattern } from '../../config/pattern.js'
import { isObject } from '../protocol/raw-json.js'
import { invalidToken, readConnectClaims, readParties, readSubscribeClaims } from './claims.js'
import { Jwks } from './jwks.js'
import { StaticKeys } from './keys.js'

/** @import { Config } from '../../config/options.js' */
/** @import { Pattern } from '../../config/pattern.js' */
/** @import { CommonClaims, Override, SubOptions } from './claims.js' */
/** @import { JwksOptions } from './jwks.js' */

/**
 * @typedef {object} ConnectClaims
 * @property {string} user '' = anonymous
 * @property {number} expireAt unix s of the connection's end, 0 = never
 * @property {string | undefined} info raw JSON text on one line, or the content of b64info
 * @property {string | undefined} meta raw JSON text on one line
 * @property {Map<string, SubOptions>} subs server-side subscriptions, from `subs` or `channels`
 */

/**
 * @typedef {object} SubscribeClaims
 * @property {string} user '' = anonymous
 * @property {string} channel
 * @property {string | undefined} client
 * @property {number} expireAt unix s of the subscription's end, 0 = never
 * @property {string} [info] raw JSON text on one line, or the content of b64info
 * @property {string} [data] raw JSON text on one line, or the content of b64data
 * @property {Override} [override]
 */

/**
 * @typedef {object} Jwt a parsed token, not verified
 * @property {string} token
 * @property {Record<string, any>} header
 * @property {Record<string, any>} payload
 * @property {string} json the text of the payload
 */

/** Claims that only add permissions, and are not supported. */
const ADDITIONS = Object.freeze({ connect: ['caps', 'labels'], subscribe: ['allow'] })

const base64url = /^[A-Za-z0-9_-]+$/

/** @param {string} segment */
function decodeSegment(segment) {
  // One character beyond a group of four holds no byte; Buffer would ignore it.
  if (segment.length % 4 === 1 || !base64url.test(segment)) throw invalidToken
  return Buffer.from(segment, 'base64url').toString('utf8')
}

/** @param {string} json @returns {Record<string, any>} */
function parseObject(json) {
  let value
  try {
    value = JSON.parse(json)
  } catch {
    throw invalidToken
  }
  if (!isObject(value)) throw invalidToken
  return value
}

/** @param {any} settings @param {'audience' | 'issuer'} claim @param {string} block @returns {Pattern | null} */
function readPattern(settings, claim, block) {
  const pattern = settings[`${claim}_regex`]
  if (!pattern) return null
  if (settings[claim])
    throw new Error(`${block}.${claim} and ${block}.${claim}_regex cannot be combined; set only one of them`)
  try {
    return compilePattern(pattern)
  } catch (error) {
    throw new Error(`${block}.${claim}_regex: ${error.message}`)
  }
}

/** Checks tokens by one block of settings. */
class Verifier {
  #userClaim
  #audience
  #issuer
  #audiencePattern
  #issuerPattern
  #keys
  /** @type {((groups: Record<string, string>) => string | undefined) | null} */
  #endpoint = null
  #jwks
  #skipSignature
  #clock
  #onIgnored
  // Nearly all tokens begin with the same header.
  #headerText = ''
  /** @type {Record<string, any>} */
  #header = {}

  /**
   * @param {any} client the `client` block @param {'token' | 'subscription_token'} key
   * @param {{jwks: Jwks, clock: () => number, onIgnored: (claim: string) => void}} options
   */
  constructor(client, key, options) {
    const settings = client[key]
    const block = `client.${key}`
    this.#clock = options.clock
    this.#onIgnored = options.onIgnored
    this.#skipSignature = Boolean(client.insecure_skip_token_signature_verify)
    this.#userClaim = /** @type {string} */ (settings.user_id_claim || 'sub')
    if (!/^[a-zA-Z_]+$/.test(this.#userClaim)) {
      throw new Error(`${block}.user_id_claim may contain only letters and _`)
    }
    this.#audience = /** @type {string} */ (settings.audience || '')
    this.#issuer = /** @type {string} */ (settings.issuer || '')
    this.#audiencePattern = readPattern(settings, 'audience', block)
    this.#issuerPattern = readPattern(settings, 'issuer', block)
    this.#keys = new StaticKeys(settings, block, options.clock)
    this.#jwks = options.jwks
    if (settings.jwks_public_endpoint) {
      try {
        this.#endpoint = createEndpoint(settings.jwks_public_endpoint, settings)
      } catch (error) {
        throw new Error(`${block}.jwks_public_endpoint: ${error.message}`)
      }
    }
  }

  /**
   * @template T
   * @param {string} token @param {(jwt: Jwt) => T} finish checks after the signature
   * @returns {T | Promise<T>}
   * @throws `invalidToken`, and errors of `finish`
   */
  verify(token, finish) {
    const jwt = this.#parse(token)
    const groups = this.#matchPatterns(jwt.payload)
    const good = this.#skipSignature || this.#checkSignature(jwt, groups)
    if (good === true) return finish(jwt)
    if (good === false) throw invalidToken
    return good.then(result => {
      if (!result) throw invalidToken
      return finish(jwt)
    })
  }

  /** @param {any} token @returns {Jwt} */
  #parse(token) {
    if (typeof token !== 'string') throw invalidToken
    const first = token.indexOf('.')
    const second = token.indexOf('.', first + 1)
    if (first <= 0 || second === -1 || token.indexOf('.', second + 1) !== -1) throw invalidToken
    const headerText = token.slice(0, first)
    if (headerText !== this.#headerText) {
      const header = parseObject(decodeSegment(headerText))
      // A slice would keep the caller's whole token in memory.
      this.#headerText = headerText.length < 1024 ? Buffer.from(headerText).toString() : ''
      this.#header = header
    }
    const header = this.#header
    if (typeof header.alg !== 'string' || typeof (header.kid ?? '') !== 'string') throw invalidToken
    const json = decodeSegment(token.slice(first + 1, second))
    return { token, header, payload: parseObject(json), json }
  }

  /** @param {Record<string, any>} payload @returns {Record<string, string>} named groups of both patterns */
  #matchPatterns(payload) {
    if (this.#issuerPattern === null && this.#audiencePattern === null) return {}
    const { audience, issuer } = readParties(payload)
    /** @type {Record<string, string>} */
    const groups = {}
    if (this.#issuerPattern !== null) {
      const match = issuer === undefined ? null : this.#issuerPattern.exec(issuer)
      if (match === null) throw invalidToken
      Object.assign(groups, match.groups)
    }
    if (this.#audiencePattern !== null) {
      const pattern = this.#audiencePattern
      let match = null
      for (const member of audience) if ((match = pattern.exec(member)) !== null) break
      if (match === null) throw invalidToken
      Object.assign(groups, match.groups)
    }
    return groups
  }

  /** @param {Jwt} jwt @param {Record<string, string>} groups @returns {boolean | Promise<boolean>} */
  #checkSignature({ token, header }, groups) {
    // JWKS replaces the keys of the configuration.
    if (this.#endpoint === null) return this.#keys.check(token, header.alg)
    const { alg, kid } = header
    // No key set serves another algorithm: do not request it.
    if (typeof kid !== 'string' || kid === '' || !/^(?:[RE]S(?:256|384|512)|EdDSA)$/.test(alg)) return false
    const url = this.#endpoint(groups)
    if (url === undefined) return false
    const found = this.#jwks.find(url, kid)
    /** @param {Map<string, (token: string) => boolean>[]} keys */
    const check = keys => keys.some(key => key.get(alg)?.(token) === true)
    if (Array.isArray(found)) return check(found)
    return found.then(check, () => {
      // The token may be good: the client should reconnect.
      throw errors.internal
    })
  }

  /** @param {Jwt} jwt @param {boolean} expires whether the connection does @returns {ConnectClaims} */
  finishConnect({ payload, json }, expires) {
    const claims = readConnectClaims(payload, json, this.#userClaim)
    this.#checkParties(payload)
    // A subscription token must not open a connection.
    if (claims.channel !== '') throw invalidToken
    this.#tellIgnored(payload, ADDITIONS.connect)
    const expireAt = this.#expiry(claims, expires)
    return { user: claims.user, expireAt, info: claims.info, meta: claims.meta, subs: claims.subs }
  }

  /** @param {Jwt} jwt @returns {SubscribeClaims} */
  finishSubscribe({ payload, json }) {
    const claims = readSubscribeClaims(payload, json, this.#userClaim)
    this.#checkParties(payload)
    if (claims.channel === '') throw invalidToken
    this.#tellIgnored(payload, ADDITIONS.subscribe)
    const { user, channel, client, info, data, override } = claims
    return { user, channel, client, expireAt: this.#expiry(claims, true), info, data, override }
  }

  /** @param {Record<string, any>} payload @param {readonly string[]} claims */
  #tellIgnored(payload, claims) {
    for (const claim of claims) if (Object.hasOwn(payload, claim)) this.#onIgnored(claim)
  }

  /** @param {Record<string, any>} payload */
  #checkParties(payload) {
    const { audience, issuer } = readParties(payload)
    if (this.#audience !== '' && !audience.includes(this.#audience)) throw invalidToken
    if (this.#issuer !== '' && issuer !== this.#issuer) throw invalidToken
  }

  /** @param {CommonClaims} claims @param {boolean} expires false: never @returns {number} unix s, 0 = never */
  #expiry({ exp, nbf, expireAt }, expires) {
    const now = this.#clock()
    if (exp !== undefined && exp * 1000 <= now) throw errors.tokenExpired
    if (nbf !== undefined && nbf * 1000 > now) throw errors.tokenExpired
    if (!expires) return 0
    // Rounded up: a token good for another half second must not make an expired connection.
    if (expireAt === undefined) return exp === undefined ? 0 : Math.ceil(exp)
    if (expireAt <= 0) return 0
    if (expireAt * 1000 <= now) throw errors.expired
    return expireAt
  }
}

/**
 * @template T
 * @param {Error} invalid answer to a bad token @param {() => T | Promise<T>} verify
 * @returns {T | Promise<T>}
 */
function answer(invalid, verify) {
  /** @param {Error} error */
  const translate = error => (error === invalidToken ? invalid : error)
  try {
    const claims = verify()
    if (!(claims instanceof Promise)) return claims
    return claims.catch(error => {
      throw translate(error)
    })
  } catch (error) {
    throw translate(error)
  }
}

/**
 * @typedef {JwksOptions & {jwks?: Jwks, onIgnored?: (claim: string) => void}} TokensOptions `jwks`: known key sets, else
 *   it has its own; `onIgnored`: called for a good token with a claim that is not supported and only adds permissions
 */

/** Checks tokens by one configuration; a reload makes a new one. */
export class Tokens {
  #connect
  #subscribe

  /**
   * @param {Config} config of `loadConfig()` @param {TokensOptions} [options]
   * @throws {Error} naming the invalid option
   */
  constructor({ client }, options = {}) {
    const settings = { clock: Date.now, jwks: new Jwks(options), onIgnored() {}, ...options }
    this.#connect = new Verifier(client, 'token', settings)
    this.#subscribe = client.subscription_token?.enabled
      ? new Verifier(client, 'subscription_token', settings)
      : this.#connect
  }

  /**
   * For connect and refresh. The caller checks that namespaces exist and whether the user may be anonymous.
   * @param {string} token
   * @param {boolean} [expires] false: the token does not end the connection, but must not have expired itself
   * @returns {ConnectClaims | Promise<ConnectClaims>} a Promise only when keys must be fetched
   * @throws disconnects.invalidToken, errors.tokenExpired, errors.expired (`expire_at` has passed), errors.internal
   *   (the JWKS endpoint is unreachable)
   */
  connect(token, expires = true) {
    const verifier = this.#connect
    return answer(disconnects.invalidToken, () =>
      verifier.verify(token, jwt => verifier.finishConnect(jwt, expires)),
    )
  }

  /**
   * For subscribe and sub_refresh. The caller checks channel, user and client.
   * @param {string} token
   * @returns {SubscribeClaims | Promise<SubscribeClaims>} a Promise only when keys must be fetched
   * @throws errors.permissionDenied (a bad token), errors.tokenExpired, errors.expired (`expire_at` has passed),
   *   errors.internal (the JWKS endpoint is unreachable)
   */
  subscribe(token) {
    const verifier = this.#subscribe
    return answer(errors.permissionDenied, () => verifier.verify(token, jwt => verifier.finishSubscribe(jwt)))
  }
}

/** @type {Map<string, any>} */
const NO_SUBS = new Map()

/**
 * @typedef {object} Identity of a connecting client
 * @property {string} user '' = anonymous
 * @property {number} expireAt unix s, 0 = never
 * @property {string} [info] raw JSON
 * @property {string} [meta] raw JSON, never sent to the client
 * @property {Map<string, any>} subs server-side subscriptions: channel -> Grant of session/plan.js
 * @property {string | Buffer} [data] of a handler, for the connect result
 * @property {boolean} [answered] whether it comes from a handler
 */

/**
 * The ways to authenticate, in their order (server API).
 * @param {object} parts
 * @param {Config['client']} parts.client the `client` block
 * @param {Tokens} parts.tokens @param {string | undefined} token
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
