// Checks claim types (as in Centrifugo). Client payloads and `meta` keep their JSON text; `null` counts as absent.

import { readAllow } from '../hooks/capabilities.js'
import { readLabels } from '../hooks/labels.js'
import { readServerFilter } from '../protocol/filter.js'
import { decodeBase64, toJson } from '../protocol/payload.js'
import { isObject, rawMembers, singleLine } from '../protocol/raw-json.js'

/** @import { Filter } from '../protocol/filter.js' */
/** @import { Capabilities, CapabilitySets } from '../hooks/capabilities.js' */

/** Thrown for any invalid token; tokens.js converts it to an error reply or a disconnect. */
export const invalidToken = Object.freeze(new Error('malformed token'))

/**
 * @typedef {{presence?: boolean, join_leave?: boolean, force_push_join_leave?: boolean, force_positioning?: boolean,
 *   force_recovery?: boolean}} Override
 * @typedef {{info?: string, data?: string, override?: Override, filter?: Filter}} SubOptions raw JSON text; `filter`: the
 *   backend's
 * @typedef {Record<string, any>} Claims
 * @typedef {() => Map<string, string>} RawMembers original texts
 *
 * @typedef {object} CommonClaims
 * @property {string} user '' = anonymous
 * @property {string} channel '' = none
 * @property {number | undefined} exp unix s
 * @property {number | undefined} nbf unix s
 * @property {number | undefined} expireAt unix s, whole
 * @property {TokenStamp} stamp
 *
 * @typedef {import('../../channels/broker/denials/contract.js').TokenStamp} TokenStamp
 */

/** Maximum `jti` that is kept, bytes; as in `revoke_token`. */
const MAX_UID = 255
/** Of all tokens with neither claim. @type {TokenStamp} */
const NO_STAMP = Object.freeze({ uid: '', issuedAt: 0 })

/** @type {(keyof Override)[]} */
const overrides = ['presence', 'join_leave', 'force_push_join_leave', 'force_positioning', 'force_recovery']

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

/**
 * @template T
 * @param {any} value @param {(value: any) => value is T} isValid
 * @returns {T | undefined}
 */
function optional(value, isValid) {
  if (value === undefined || value === null) return undefined
  if (!isValid(value)) throw invalidToken
  return value
}

/** @param {any} value @returns {value is string} */
const isText = value => typeof value === 'string'
/** @param {any} value @returns {value is number} */
const isInteger = value => Number.isSafeInteger(value)
/** @param {any} value @returns {value is boolean} */
const isBoolean = value => typeof value === 'boolean'
/** @param {any} value @returns {value is Claims} */
const isClaims = value => isObject(value)

/** @param {any} value */
const readText = value => optional(value, isText) ?? ''

/** @param {any} value unix s; text from some issuers */
function readTime(value) {
  if (value === undefined || value === null) return undefined
  const number = isText(value) && NUMBER.test(value) ? Number(value) : value
  if (typeof number !== 'number' || !Number.isFinite(number)) throw invalidToken
  return number
}

/** @param {Claims} claims @param {string} name @param {RawMembers} raw */
const readJson = (claims, name, raw) =>
  (claims[name] ?? null) === null ? undefined : singleLine(/** @type {string} */ (raw().get(name)))

/** Base64 first, else plain. @param {Claims} claims @param {'info' | 'data'} name @param {RawMembers} raw */
function readPayload(claims, name, raw) {
  const base64 = readText(claims[`b64${name}`])
  if (base64 === '') return readJson(claims, name, raw)
  const bytes = decodeBase64(base64)
  if (bytes === undefined) throw invalidToken
  return toJson(bytes)
}

/** @param {Claims} claims @returns {TokenStamp} */
function readStamp({ jti, iat }) {
  const text = readText(jti)
  const uid = Buffer.byteLength(text) > MAX_UID ? '' : text
  const issuedAt = readTime(iat) ?? 0
  return uid === '' && issuedAt === 0 ? NO_STAMP : { uid, issuedAt }
}

/** @param {any} value `{"presence":{"value":true}, ...}` */
function readOverride(value) {
  const given = optional(value, isClaims) ?? {}
  /** @type {Override | undefined} */
  let result
  for (const name of overrides) {
    const entry = optional(given[name], isClaims)
    if (entry === undefined) continue
    result ??= {}
    result[name] = optional(entry.value, isBoolean) ?? false
  }
  return result
}

/** @param {Claims} claims @param {RawMembers} raw @returns {SubOptions} */
function readSubOptions(claims, raw) {
  /** @type {SubOptions} */
  const options = {}
  const info = readPayload(claims, 'info', raw)
  const data = readPayload(claims, 'data', raw)
  const override = readOverride(claims.override)
  if (info !== undefined) options.info = info
  if (data !== undefined) options.data = data
  if (override !== undefined) options.override = override
  const { server_tags_filter: filter } = claims
  if (filter !== undefined && filter !== null) options.filter = checked(() => readServerFilter(filter))
  return options
}

/** @param {any} channel @returns {string} */
function readChannel(channel) {
  if (typeof channel !== 'string' || channel === '') throw invalidToken
  return channel
}

/** @param {Claims} claims @param {RawMembers} raw */
function readSubs({ subs, channels }, raw) {
  /** @type {Map<string, SubOptions>} */
  const result = new Map()
  const given = optional(subs, isClaims) ?? {}
  const rawSubs = lazyMembers(() => raw().get('subs') ?? '')
  for (const name of Object.keys(given)) {
    const rawOptions = lazyMembers(() => /** @type {string} */ (rawSubs().get(name)))
    result.set(readChannel(name), readSubOptions(optional(given[name], isClaims) ?? {}, rawOptions))
  }
  // `subs` replaces `channels`, unless empty.
  const replaced = result.size > 0
  for (const name of optional(channels, Array.isArray) ?? []) {
    const channel = readChannel(name)
    if (!replaced) result.set(channel, {})
  }
  return result
}

/** @param {Claims} claims */
export function readParties({ aud, iss }) {
  const audience = [aud ?? []].flat()
  if (!audience.every(isText)) throw invalidToken
  return { audience, issuer: [optional(iss, isText) ?? []].flat() }
}

/** @param {() => string} json @returns {RawMembers} read on first use */
function lazyMembers(json) {
  /** @type {Map<string, string> | undefined} */
  let members
  return () => (members ??= rawMembers(json()))
}

/** @param {Claims} claims @param {string} userClaim with the user id @returns {CommonClaims} */
function readCommon(claims, userClaim) {
  return {
    user: Object.hasOwn(claims, userClaim) ? readText(claims[userClaim]) : '',
    channel: readText(claims.channel),
    exp: readTime(claims.exp),
    nbf: readTime(claims.nbf),
    expireAt: optional(claims.expire_at, isInteger),
    stamp: readStamp(claims),
  }
}

/** @template T @param {() => T} read @returns {T} */
function checked(read) {
  try {
    return read()
  } catch {
    throw invalidToken
  }
}

/**
 * @param {Claims} claims @param {string} json original text @param {string} userClaim
 * @param {CapabilitySets} capabilities
 */
export function readConnectClaims(claims, json, userClaim, capabilities) {
  const raw = lazyMembers(() => json)
  return {
    ...readCommon(claims, userClaim),
    info: readPayload(claims, 'info', raw),
    meta: readJson(claims, 'meta', raw),
    subs: readSubs(claims, raw),
    caps: /** @type {Capabilities | null} */ (checked(() => capabilities.read(claims.caps))),
    labels: checked(() => readLabels(claims.labels)) ?? null,
  }
}

/** @param {Claims} claims @param {string} json original text @param {string} userClaim */
export function readSubscribeClaims(claims, json, userClaim) {
  const options = readSubOptions(
    claims,
    lazyMembers(() => json),
  )
  const client = readText(claims.client) || undefined
  return {
    ...readCommon(claims, userClaim),
    ...options,
    client,
    allow: checked(() => readAllow(claims.allow)),
  }
}
