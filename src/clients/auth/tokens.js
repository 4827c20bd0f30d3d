import { disconnects, errors } from '../../base/errors.js'
import { Denylist } from '../../channels/broker/denylist.js'
import { createEndpoint } from '../../config/jwks-endpoint.js'
import { compilePattern } from '../../config/pattern.js'
import { CapabilitySets } from '../hooks/capabilities.js'
import { isObject } from '../protocol/raw-json.js'
import { invalidToken, readConnectClaims, readParties, readSubscribeClaims } from './claims.js'
import { Jwks } from './jwks.js'
import { StaticKeys } from './keys.js'

/** @import { Config } from '../../config/options.js' */
/** @import { Pattern } from '../../config/pattern.js' */
/** @import { Capabilities } from '../hooks/capabilities.js' */
/** @import { Labels } from '../hooks/labels.js' */
/** @import { CommonClaims, Override, SubOptions, TokenStamp } from './claims.js' */
/** @import { Filter } from '../protocol/filter.js' */
/** @import { JwksOptions } from './jwks.js' */

/**
 * Payloads are one-line JSON text.
 * @typedef {object} ConnectClaims
 * @property {string} user '' = anonymous
 * @property {number} expireAt end of the connection, unix s, 0 = never
 * @property {string | undefined} info
 * @property {string | undefined} meta
 * @property {Map<string, SubOptions>} subs from `subs` or `channels`
 * @property {Capabilities | null} caps
 * @property {Labels | null} labels
 * @property {TokenStamp} stamp
 *
 * @typedef {object} SubscribeClaims
 * @property {string} user '' = anonymous
 * @property {string} channel
 * @property {string | undefined} client
 * @property {number} expireAt end of the subscription, unix s, 0 = never
 * @property {string} [info]
 * @property {string} [data]
 * @property {Override} [override]
 * @property {number} allow bits of Operation
 * @property {Filter} [filter] the backend's
 * @property {TokenStamp} stamp
 */

/**
 * @typedef {{token: string, header: Record<string, any>, payload: Record<string, any>, json: string}} Jwt unverified
 */

const PARTIES = /** @type {const} */ (['issuer', 'audience'])

const base64url = /^[A-Za-z0-9_-]+$/

/** @param {string} segment */
function decodeSegment(segment) {
  // A single trailing character encodes no byte; Buffer ignores it.
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

/** @param {any} settings @param {'audience' | 'issuer'} claim @param {string} block */
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

/**
 * Groups of the first match.
 * @param {Pattern | null} pattern @param {string[]} texts
 * @returns {Record<string, string>}
 */
function groupsOf(pattern, texts) {
  if (pattern === null) return {}
  for (const text of texts) {
    const match = pattern.exec(text)
    if (match !== null) return match.groups ?? {}
  }
  throw invalidToken
}

class Verifier {
  #userClaim
  #parties
  #keys
  /** @type {((groups: Record<string, string>) => string | undefined) | null} */
  #endpoint = null
  #jwks
  #skipSignature
  #clock
  #capabilities
  #denylist
  // Nearly all tokens have the same header.
  #headerText = ''
  /** @type {Record<string, any>} */
  #header = {}

  /**
   * @param {any} client the `client` block @param {'token' | 'subscription_token'} key
   * @param {{jwks: Jwks, clock: () => number, capabilities: CapabilitySets, denylist: Denylist}} options
   */
  constructor(client, key, options) {
    const settings = client[key]
    const block = `client.${key}`
    this.#clock = options.clock
    this.#capabilities = options.capabilities
    this.#denylist = options.denylist
    this.#skipSignature = Boolean(client.insecure_skip_token_signature_verify)
    this.#userClaim = /** @type {string} */ (settings.user_id_claim || 'sub')
    if (!/^[a-zA-Z_]+$/.test(this.#userClaim)) {
      throw new Error(`${block}.user_id_claim may contain only letters and _`)
    }
    this.#parties = PARTIES.map(claim => ({
      claim,
      value: /** @type {string} */ (settings[claim] || ''),
      pattern: readPattern(settings, claim, block),
    }))
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
   * @param {string} token @param {(jwt: Jwt) => T} finish called after the signature check
   * @returns {T | Promise<T>}
   */
  verify(token, finish) {
    const jwt = this.#parse(token)
    const groups = this.#matchPatterns(jwt.payload)
    const done = (/** @type {boolean} */ good) => {
      if (!good) throw invalidToken
      return finish(jwt)
    }
    const good = this.#skipSignature || this.#checkSignature(jwt, groups)
    return typeof good === 'boolean' ? done(good) : good.then(done)
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
      // Copied: a slice would retain the whole token.
      this.#headerText = headerText.length < 1024 ? Buffer.from(headerText).toString() : ''
      this.#header = header
    }
    const header = this.#header
    if (typeof header.alg !== 'string' || typeof (header.kid ?? '') !== 'string') throw invalidToken
    const json = decodeSegment(token.slice(first + 1, second))
    return { token, header, payload: parseObject(json), json }
  }

  /** @param {Record<string, any>} payload @returns {Record<string, string>} named groups */
  #matchPatterns(payload) {
    if (this.#parties.every(({ pattern }) => pattern === null)) return {}
    const given = readParties(payload)
    return Object.assign({}, ...this.#parties.map(({ claim, pattern }) => groupsOf(pattern, given[claim])))
  }

  /** @param {Jwt} jwt @param {Record<string, string>} groups @returns {boolean | Promise<boolean>} */
  #checkSignature({ token, header }, groups) {
    if (this.#endpoint === null) return this.#keys.check(token, header.alg)
    const { alg, kid } = header
    // Key sets have no other algorithms.
    if (typeof kid !== 'string' || kid === '' || !/^(?:[RE]S(?:256|384|512)|EdDSA)$/.test(alg)) return false
    const url = this.#endpoint(groups)
    if (url === undefined) return false
    const found = this.#jwks.find(url, kid)
    /** @param {Map<string, (token: string) => boolean>[]} keys */
    const check = keys => keys.some(key => key.get(alg)?.(token) === true)
    if (Array.isArray(found)) return check(found)
    return found.then(check, () => {
      // The token may be valid: the client reconnects.
      throw errors.internal
    })
  }

  /** @param {Jwt} jwt @param {boolean} expires @returns {ConnectClaims} */
  finishConnect({ payload, json }, expires) {
    const claims = readConnectClaims(payload, json, this.#userClaim, this.#capabilities)
    this.#checkParties(payload)
    // A subscription token must not open a connection.
    if (claims.channel !== '') throw invalidToken
    const { user, info, meta, subs, caps, labels, stamp } = claims
    const expireAt = this.#expiry(claims, expires)
    this.#checkRevoked(claims)
    return { user, expireAt, info, meta, subs, caps, labels, stamp }
  }

  /** @param {Jwt} jwt @returns {SubscribeClaims} */
  finishSubscribe({ payload, json }) {
    const claims = readSubscribeClaims(payload, json, this.#userClaim)
    this.#checkParties(payload)
    if (claims.channel === '') throw invalidToken
    const { user, channel, client, info, data, override, allow, filter, stamp } = claims
    const expireAt = this.#expiry(claims, true)
    this.#checkRevoked(claims)
    return {
      user,
      channel,
      client,
      expireAt,
      info,
      data,
      override,
      allow,
      filter,
      stamp,
    }
  }

  /** @param {Record<string, any>} payload */
  #checkParties(payload) {
    const given = readParties(payload)
    for (const { claim, value } of this.#parties)
      if (value !== '' && !given[claim].includes(value)) throw invalidToken
  }

  /** @param {CommonClaims} claims */
  #checkRevoked({ stamp, user, channel }) {
    if (this.#denylist.size > 0 && this.#denylist.rejects(stamp, user, channel)) throw errors.tokenRevoked
  }

  /** @param {CommonClaims} claims @param {boolean} expires false: never */
  #expiry({ exp, nbf, expireAt }, expires) {
    const now = this.#clock()
    if (exp !== undefined && exp * 1000 <= now) throw errors.tokenExpired
    if (nbf !== undefined && nbf * 1000 > now) throw errors.tokenExpired
    if (!expires) return 0
    // Rounded up: a token valid for half a second must not open an expired connection.
    if (expireAt === undefined) return exp === undefined ? 0 : Math.ceil(exp)
    if (expireAt <= 0) return 0
    if (expireAt * 1000 <= now) throw errors.expired
    return expireAt
  }
}

/** @template T @param {Error} invalid for an invalid token @param {() => T | Promise<T>} verify */
function answer(invalid, verify) {
  /** @type {(error: Error) => never} */
  const fail = error => {
    throw error === invalidToken ? invalid : error
  }
  try {
    const claims = verify()
    return claims instanceof Promise ? claims.catch(fail) : claims
  } catch (error) {
    return fail(error)
  }
}

/**
 * @typedef {JwksOptions & {jwks?: Jwks, capabilities?: CapabilitySets, denylist?: Denylist}} TokensOptions
 */

export class Tokens {
  #connect
  #subscribe

  /** @param {Config} config @param {TokensOptions} [options] @throws {Error} naming the invalid option */
  constructor({ client }, options = {}) {
    const defaults = {
      clock: Date.now,
      jwks: new Jwks(options),
      capabilities: new CapabilitySets(),
      denylist: new Denylist(),
    }
    const settings = { ...defaults, ...options }
    this.#connect = new Verifier(client, 'token', settings)
    this.#subscribe = client.subscription_token?.enabled
      ? new Verifier(client, 'subscription_token', settings)
      : this.#connect
  }

  /**
   * For connect and refresh. Callers check namespaces and anonymous users.
   * @param {string} token
   * @param {boolean} [expires] false: the connection never expires, but an expired token is rejected
   * @returns {ConnectClaims | Promise<ConnectClaims>} a Promise only if keys must be fetched
   * @throws disconnects.invalidToken, errors.tokenExpired, errors.tokenRevoked, errors.expired (`expire_at` has passed), errors.internal
   *   (unreachable JWKS endpoint)
   */
  connect(token, expires = true) {
    const verifier = this.#connect
    return answer(disconnects.invalidToken, () =>
      verifier.verify(token, jwt => verifier.finishConnect(jwt, expires)),
    )
  }

  /**
   * For subscribe and sub_refresh. Callers check channel, user and client.
   * @param {string} token
   * @returns {SubscribeClaims | Promise<SubscribeClaims>}
   * @throws errors.permissionDenied (invalid token), and the other errors of `connect`
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
 * @property {Map<string, any>} subs channel -> Grant of session/plan.js
 * @property {string | Buffer} [data] for the connect result
 * @property {Capabilities | null} [caps]
 * @property {Labels | null} [labels]
 * @property {boolean} [answered] by a handler
 * @property {TokenStamp} [stamp] of the connection token
 */

/**
 * Tries the authentication methods in order (server API).
 * @param {{client: Config['client'], tokens: Tokens}} parts @param {string | undefined} token
 * @param {string} trusted user from the trusted header, '' = none
 * @returns {Identity | Promise<Identity>}
 * @throws disconnects.badRequest (token required), and the errors of `tokens.connect`
 */
export function identify({ client, tokens }, token, trusted) {
  if (token) return tokens.connect(token, !client.insecure)
  if (client.allow_anonymous_connect_without_token || client.insecure)
    return { user: '', expireAt: 0, subs: NO_SUBS }
  if (trusted !== '') return { user: trusted, expireAt: 0, subs: NO_SUBS }
  throw disconnects.badRequest
}
