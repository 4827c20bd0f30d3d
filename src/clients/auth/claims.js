// Reads the claims of a token and checks their types; names and types are those of Centrifugo. Payloads for clients
// (info, data) and `meta` keep their original JSON text.
import { decodeBase64, toJson } from '../protocol/payload.js'
import { isObject, rawMembers, singleLine } from '../protocol/raw-json.js'

/** Thrown for every invalid token; tokens.js turns it into an error reply or a disconnect. */
export const invalidToken = Object.freeze(new Error('malformed token'))

/**
 * @typedef {{presence?: boolean, join_leave?: boolean, force_push_join_leave?: boolean, force_positioning?: boolean,
 *   force_recovery?: boolean}} Override
 */

/** @typedef {{info?: string, data?: string, override?: Override}} SubOptions `info` and `data`: raw JSON text */

/**
 * Claims of both kinds of tokens.
 * @typedef {object} CommonClaims
 * @property {string} user '' = anonymous
 * @property {string} channel '' = none
 * @property {number | undefined} exp unix s
 * @property {number | undefined} nbf unix s
 * @property {number | undefined} expireAt unix s, whole
 * @property {string | undefined} info raw JSON text
 */

/** @type {(keyof Override)[]} */
const overrides = ['presence', 'join_leave', 'force_push_join_leave', 'force_positioning', 'force_recovery']

/** @param {any} value @returns {string} '' when absent */
function readText(value) {
  if (value === undefined || value === null) return ''
  if (typeof value !== 'string') throw invalidToken
  return value
}

/** The syntax of a JSON number. */
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

/** @param {any} value unix s; as text, too: some issuers write that @returns {number | undefined} */
function readTime(value) {
  if (value === undefined || value === null) return undefined
  const number = typeof value === 'string' && NUMBER.test(value) ? Number(value) : value
  if (typeof number !== 'number' || !Number.isFinite(number)) throw invalidToken
  return number
}

/** @param {any} value unix s @returns {number | undefined} */
function readWholeTime(value) {
  if (value === undefined || value === null) return undefined
  if (!Number.isSafeInteger(value)) throw invalidToken
  return value
}

/** @param {any} value a JSON object, or nothing @returns {Record<string, any> | undefined} */
function readObject(value) {
  if (value === undefined || value === null) return undefined
  if (!isObject(value)) throw invalidToken
  return value
}

/**
 * A payload from its base64 or its plain claim. The base64 one takes precedence unless it is empty.
 * @param {any} encoded `b64info` or `b64data` @param {any} plain
 * @param {() => string | undefined} raw original text of `plain`
 * @returns {string | undefined}
 */
function readPayload(encoded, plain, raw) {
  const base64 = readText(encoded)
  if (base64 !== '') {
    const bytes = decodeBase64(base64)
    if (bytes === undefined) throw invalidToken
    return toJson(bytes)
  }
  if (plain === undefined || plain === null) return undefined
  return singleLine(/** @type {string} */ (raw()))
}

/** @param {any} value `{"presence":{"value":true}, ...}` @returns {Override | undefined} */
function readOverride(value) {
  const given = readObject(value)
  if (given === undefined) return undefined
  /** @type {Override | undefined} */
  let result
  for (const name of overrides) {
    const entry = readObject(given[name])
    if (entry === undefined) continue
    if (entry.value !== undefined && entry.value !== null && typeof entry.value !== 'boolean')
      throw invalidToken
    result ??= {}
    result[name] = entry.value === true
  }
  return result
}

/**
 * @param {Record<string, any>} value with `info`, `b64info`, `data`, `b64data`, `override`
 * @param {() => Map<string, string>} raw its members' original texts
 * @returns {SubOptions}
 */
function readSubOptions(value, raw) {
  // Not supported, even if it is empty: without it, the subscription would get too much. `null` is none.
  if (value.server_tags_filter !== undefined && value.server_tags_filter !== null) throw invalidToken
  /** @type {SubOptions} */
  const options = {}
  const info = readPayload(value.b64info, value.info, () => raw().get('info'))
  const data = readPayload(value.b64data, value.data, () => raw().get('data'))
  const override = readOverride(value.override)
  if (info !== undefined) options.info = info
  if (data !== undefined) options.data = data
  if (override !== undefined) options.override = override
  return options
}

/** @param {any} channel @returns {string} */
function readChannel(channel) {
  if (typeof channel !== 'string' || channel === '') throw invalidToken
  return channel
}

/** @param {any} subs @param {any} channels @param {() => Map<string, string>} raw @returns {Map<string, SubOptions>} */
function readSubs(subs, channels, raw) {
  /** @type {Map<string, SubOptions>} */
  const result = new Map()
  const given = readObject(subs) ?? {}
  if (channels !== undefined && channels !== null && !Array.isArray(channels)) throw invalidToken
  const names = Object.keys(given)
  const rawSubs = lazyMembers(() => raw().get('subs') ?? '')
  for (const name of names) {
    const rawOptions = lazyMembers(() => /** @type {string} */ (rawSubs().get(name)))
    result.set(readChannel(name), readSubOptions(readObject(given[name]) ?? {}, rawOptions))
  }
  for (const name of channels ?? []) {
    const channel = readChannel(name)
    // A `subs` that is not empty replaces `channels`.
    if (names.length === 0) result.set(channel, {})
  }
  return result
}

/** @param {Record<string, any>} claims @param {string} userClaim the claim that holds the user id */
function readUser(claims, userClaim) {
  return Object.hasOwn(claims, userClaim) ? readText(claims[userClaim]) : ''
}

/** @param {Record<string, any>} claims @returns {{audience: string[], issuer: string | undefined}} */
export function readParties({ aud, iss }) {
  const audience = aud === undefined || aud === null ? [] : Array.isArray(aud) ? aud : [aud]
  for (const member of audience) if (typeof member !== 'string') throw invalidToken
  return { audience, issuer: iss === undefined || iss === null ? undefined : readText(iss) }
}

/** @param {() => string} json @returns {() => Map<string, string>} original texts of its members, once needed */
function lazyMembers(json) {
  /** @type {Map<string, string> | undefined} */
  let members
  return () => (members ??= rawMembers(json()))
}

/**
 * @param {Record<string, any>} claims @param {string} json their original text @param {string} userClaim
 * @returns {CommonClaims & {meta: string | undefined, subs: Map<string, SubOptions>}}
 */
export function readConnectClaims(claims, json, userClaim) {
  const raw = lazyMembers(() => json)
  // Not used, but checked.
  readText(claims.jti)
  return {
    user: readUser(claims, userClaim),
    channel: readText(claims.channel),
    exp: readTime(claims.exp),
    nbf: readTime(claims.nbf),
    expireAt: readWholeTime(claims.expire_at),
    info: readPayload(claims.b64info, claims.info, () => raw().get('info')),
    meta: readPayload('', claims.meta, () => raw().get('meta')),
    subs: readSubs(claims.subs, claims.channels, raw),
  }
}

/**
 * @param {Record<string, any>} claims @param {string} json their original text @param {string} userClaim
 * @returns {CommonClaims & SubOptions & {client: string | undefined}}
 */
export function readSubscribeClaims(claims, json, userClaim) {
  const raw = lazyMembers(() => json)
  const options = readSubOptions(claims, raw)
  // Not used, but checked.
  readText(claims.jti)
  return {
    user: readUser(claims, userClaim),
    channel: readText(claims.channel),
    client: readText(claims.client) || undefined,
    exp: readTime(claims.exp),
    nbf: readTime(claims.nbf),
    expireAt: readWholeTime(claims.expire_at),
    info: options.info,
    data: options.data,
    override: options.override,
  }
}
