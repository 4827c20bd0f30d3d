// The claims of a token, read with their types (server API, sections 5 and 6). JSON for clients keeps its text.
import { decodeBase64, toJson } from '../protocol/payload.js'
import { isObject, rawMembers, singleLine } from '../protocol/raw-json.js'

/** Thrown for every invalid token; tokens.js translates it. */
export const malformed = Object.freeze(new Error('malformed token'))

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
 * @property {string | undefined} info
 */

/** @type {(keyof Override)[]} */
const overrides = ['presence', 'join_leave', 'force_push_join_leave', 'force_positioning', 'force_recovery']

/** @param {any} value @returns {string} '' when absent */
function text(value) {
  if (value === undefined || value === null) return ''
  if (typeof value !== 'string') throw malformed
  return value
}

/** A number as JSON writes it. */
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

/** @param {any} value a number, or its text: some issuers write that */
function date(value) {
  if (value === undefined || value === null) return undefined
  const number = typeof value === 'string' && NUMBER.test(value) ? Number(value) : value
  if (typeof number !== 'number' || !Number.isFinite(number)) throw malformed
  return number
}

/** @param {any} value */
function wholeDate(value) {
  if (value === undefined || value === null) return undefined
  if (!Number.isSafeInteger(value)) throw malformed
  return value
}

/** @param {any} value a JSON object, or nothing @returns {Record<string, any> | undefined} */
function object(value) {
  if (value === undefined || value === null) return undefined
  if (!isObject(value)) throw malformed
  return value
}

/**
 * The base64 form of a claim wins unless it is empty.
 * @param {any} encoded `b64info` or `b64data` @param {any} plain
 * @param {() => string | undefined} raw original text of the plain one
 * @returns {string | undefined}
 */
function payload(encoded, plain, raw) {
  const base64 = text(encoded)
  if (base64 !== '') {
    const bytes = decodeBase64(base64)
    if (bytes === undefined) throw malformed
    return toJson(bytes)
  }
  if (plain === undefined || plain === null) return undefined
  return singleLine(/** @type {string} */ (raw()))
}

/** @param {any} value `{"presence":{"value":true}, ...}` @returns {Override | undefined} */
function readOverride(value) {
  const given = object(value)
  if (given === undefined) return undefined
  /** @type {Override | undefined} */
  let result
  for (const name of overrides) {
    const entry = object(given[name])
    if (entry === undefined) continue
    if (entry.value !== undefined && entry.value !== null && typeof entry.value !== 'boolean') throw malformed
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
  /** @type {SubOptions} */
  const options = {}
  const info = payload(value.b64info, value.info, () => raw().get('info'))
  const data = payload(value.b64data, value.data, () => raw().get('data'))
  const override = readOverride(value.override)
  if (info !== undefined) options.info = info
  if (data !== undefined) options.data = data
  if (override !== undefined) options.override = override
  return options
}

/** @param {any} channel @returns {string} */
function channelName(channel) {
  if (typeof channel !== 'string' || channel === '') throw malformed
  return channel
}

/** @param {any} subs @param {any} channels @param {() => Map<string, string>} raw @returns {Map<string, SubOptions>} */
function readSubs(subs, channels, raw) {
  /** @type {Map<string, SubOptions>} */
  const result = new Map()
  const given = object(subs)
  if (channels !== undefined && channels !== null && !Array.isArray(channels)) throw malformed
  const names = given === undefined ? [] : Object.keys(given)
  if (given !== undefined && names.length > 0) {
    /** @type {Map<string, string> | undefined} */
    let texts
    for (const name of names) {
      const options = () =>
        rawMembers(/** @type {string} */ ((texts ??= rawMembers(raw().get('subs') ?? '')).get(name)))
      result.set(channelName(name), readSubOptions(object(given[name]) ?? {}, options))
    }
  }
  for (const name of channels ?? []) {
    const channel = channelName(name)
    // A `subs` that is not empty replaces `channels`.
    if (names.length === 0) result.set(channel, {})
  }
  return result
}

/** @param {Record<string, any>} claims @param {string} userClaim */
function readUser(claims, userClaim) {
  return Object.hasOwn(claims, userClaim) ? text(claims[userClaim]) : ''
}

/** @param {Record<string, any>} claims @returns {{audience: string[], issuer: string | undefined}} */
export function readParties({ aud, iss }) {
  const audience = aud === undefined || aud === null ? [] : Array.isArray(aud) ? aud : [aud]
  for (const member of audience) if (typeof member !== 'string') throw malformed
  return { audience, issuer: iss === undefined || iss === null ? undefined : text(iss) }
}

/** @param {string} json @returns {() => Map<string, string>} its members' original texts, parsed on first call */
function lazyMembers(json) {
  /** @type {Map<string, string> | undefined} */
  let members
  return () => (members ??= rawMembers(json))
}

/**
 * @param {Record<string, any>} claims @param {string} json their original text @param {string} userClaim
 * @returns {CommonClaims & {meta: string | undefined, subs: Map<string, SubOptions>}}
 */
export function readConnectClaims(claims, json, userClaim) {
  const raw = lazyMembers(json)
  text(claims.jti)
  return {
    user: readUser(claims, userClaim),
    channel: text(claims.channel),
    exp: date(claims.exp),
    nbf: date(claims.nbf),
    expireAt: wholeDate(claims.expire_at),
    info: payload(claims.b64info, claims.info, () => raw().get('info')),
    meta: payload('', claims.meta, () => raw().get('meta')),
    subs: readSubs(claims.subs, claims.channels, raw),
  }
}

/**
 * @param {Record<string, any>} claims @param {string} json their original text @param {string} userClaim
 * @returns {CommonClaims & SubOptions & {client: string | undefined}}
 */
export function readSubscribeClaims(claims, json, userClaim) {
  const options = readSubOptions(claims, lazyMembers(json))
  text(claims.jti)
  return {
    user: readUser(claims, userClaim),
    channel: text(claims.channel),
    client: text(claims.client) || undefined,
    exp: date(claims.exp),
    nbf: date(claims.nbf),
    expireAt: wholeDate(claims.expire_at),
    info: options.info,
    data: options.data,
    override: options.override,
  }
}
