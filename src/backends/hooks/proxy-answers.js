// What a backend answers -> the answers of the contract. The same for HTTP and gRPC: their transports only decode.

import { Disconnect, disconnects, ReplyError } from '../../base/errors.js'
import { CallFailed, UnknownRestriction } from '../../clients/hooks/contract.js'
import {
  bytesPayload,
  decodeBase64,
  NO_PAYLOAD,
  textPayload,
  toJson,
} from '../../clients/protocol/payload.js'
import { closeReason } from '../../clients/server/text.js'

/** @import { Payload } from '../../clients/protocol/payload.js' */
/** @import { ConnectAnswer, Override, PublishAnswer, RefreshAnswer, RpcAnswer, SubscriptionAnswer } from '../../clients/hooks/contract.js' */

/**
 * A decoded answer. Fields of `result` have the names of the proxy protocol and checked types: text, numbers (int64),
 * bigint (uint64), booleans, lists and objects of these. `data`, `info` and `meta` are JSON text on one line, or bytes
 * that nobody has checked. Absent fields are undefined.
 * @typedef {object} ProxyAnswer
 * @property {Record<string, any> | null} result
 * @property {{code: number, message: string, temporary: boolean} | null} error
 * @property {{code: number, reason: string} | null} disconnect
 */

const DEFAULT_REASON = 'disconnected'

/** @param {number} code of a disconnect */
const isUsable = code => code >= 3000 && code <= 4999

/**
 * @param {{code: number, reason: string}} given @returns {Disconnect} one that a close frame can carry: 3004 for codes
 *   that clients do not know
 */
function disconnectOf({ code, reason }) {
  return new Disconnect(
    isUsable(code) ? code : disconnects.internal.code,
    closeReason(reason) || DEFAULT_REASON,
  )
}

/** @param {string | Buffer} raw of `data` @returns {Payload} */
const payloadOf = raw => (typeof raw === 'string' ? textPayload(raw) : bytesPayload(raw))

/**
 * @param {string | Buffer} raw of `info` or `meta` @returns {string} JSON text: a copy, because it lives as long as the
 *   connection, and a part of a string keeps the whole answer
 */
const jsonOf = raw => (typeof raw === 'string' ? Buffer.from(raw).toString() : toJson(raw))

/** @param {string} text @param {string} field @returns {Buffer} @throws {CallFailed} */
function bytesOf(text, field) {
  const bytes = decodeBase64(text)
  if (bytes === undefined) throw new CallFailed(`${field} of the answer is not base64`, 'base64')
  return bytes
}

/** @param {Record<string, any>} fields @returns {Payload | undefined} `b64data` before `data` */
function dataOf({ data, b64data }) {
  if (b64data) return bytesPayload(bytesOf(b64data, 'b64data'))
  return data === undefined ? undefined : payloadOf(data)
}

/** @param {Record<string, any>} fields @returns {string | undefined} `b64info` before `info` */
function infoOf({ info, b64info }) {
  if (b64info) return toJson(bytesOf(b64info, 'b64info'))
  return info === undefined ? undefined : jsonOf(info)
}

/** @param {Record<string, {value?: boolean}> | undefined} given @returns {Override | undefined} */
function overrideOf(given) {
  if (given === undefined) return undefined
  /** @type {Record<string, boolean>} */
  const override = {}
  // An object without `value` is false: that of a protocol buffer.
  for (const [name, { value = false }] of Object.entries(given)) override[name] = value
  return override
}

/** @type {SubscriptionAnswer} */
const NO_OPTIONS = Object.freeze({})

/** Fields that restrict, and are not supported. An empty message is one, too. */
const RESTRICTIONS = Object.freeze(['server_tags_filter', 'exclude_sender'])
/** Fields that only add permissions, and are not supported. */
const ADDITIONS = Object.freeze(['caps', 'allow', 'labels'])

/** @param {Record<string, any> | null} result @returns {string[]} its fields that are ignored */
export const ignoredFields = result => ADDITIONS.filter(name => result?.[name] !== undefined)

/** @param {Record<string, any>} fields @throws {UnknownRestriction} */
function checkRestrictions(fields) {
  for (const name of RESTRICTIONS) if (fields[name]) throw new UnknownRestriction(name)
}

/** @param {Record<string, any>} options @returns {SubscriptionAnswer} */
function subscriptionOf(options) {
  checkRestrictions(options)
  return {
    info: infoOf(options),
    data: dataOf(options),
    expireAt: Math.max(0, options.expire_at ?? 0),
    override: overrideOf(options.override),
    cacheRecover: options.cache_recover,
  }
}

/** @param {Record<string, any>} result @returns {ConnectAnswer} */
function connectAnswer(result) {
  const { user = '', expire_at = 0, channels = [], subs = {}, meta } = result
  /** @type {Map<string, SubscriptionAnswer>} */
  const subscriptions = new Map()
  for (const channel of channels) if (channel !== '') subscriptions.set(channel, NO_OPTIONS)
  for (const channel of Object.keys(subs))
    if (channel !== '') subscriptions.set(channel, subscriptionOf(subs[channel]))
  return {
    user,
    expireAt: Math.max(0, expire_at),
    info: infoOf(result),
    data: dataOf(result),
    meta: meta === undefined ? undefined : jsonOf(meta),
    subs: subscriptions,
  }
}

/** The clients' flags have no effect: recovery and positions are for the backend to decide. */
const ALLOWED = Object.freeze({ ignoreFlags: true })

/** @param {Record<string, any>} result @returns {SubscriptionAnswer} */
const subscribeAnswer = result => ({
  ...subscriptionOf(result),
  cacheRecover: undefined,
  ignoreFlags: true,
})

/** @param {Record<string, any>} result @returns {RefreshAnswer | null} null: expired */
function refreshAnswer(result) {
  if (result.expired) return null
  checkRestrictions(result)
  return {
    expireAt: result.expire_at ?? 0,
    info: infoOf(result),
    meta: result.meta === undefined ? undefined : jsonOf(result.meta),
  }
}

/** @param {Record<string, any>} result @returns {PublishAnswer} */
function publishAnswer(result) {
  checkRestrictions(result)
  const { data, b64data, tags, skip_history, idempotency_key, delta, version, version_epoch } = result
  /** @type {PublishAnswer} */
  const answer = {}
  // Unlike in other events, and also if it is null.
  if (data !== undefined) answer.data = payloadOf(data)
  else if (b64data) answer.data = bytesPayload(bytesOf(b64data, 'b64data'))
  if (answer.data === NO_PAYLOAD) answer.data = undefined
  if (tags !== undefined && Object.keys(tags).length > 0) answer.tags = tags
  if (skip_history) answer.skipHistory = true
  if (idempotency_key) answer.idempotencyKey = idempotency_key
  answer.delta = delta ?? false
  if (version) answer.version = version
  if (version_epoch) answer.versionEpoch = version_epoch
  return answer
}

const UNCHANGED = Object.freeze({ delta: false })
const EMPTY = Object.freeze({})

/**
 * By event: the answer for a result, and for an answer without one.
 * @type {Readonly<Record<string, [result: (result: Record<string, any>) => any, none: any]>>}
 */
const READERS = Object.freeze({
  connect: [connectAnswer, null],
  refresh: [refreshAnswer, null],
  subscribe: [subscribeAnswer, ALLOWED],
  sub_refresh: [refreshAnswer, null],
  publish: [publishAnswer, UNCHANGED],
  rpc: [/** @returns {RpcAnswer} */ result => ({ data: dataOf(result) }), EMPTY],
  disconnected: [() => null, null],
  unsubscribed: [() => null, null],
})

/**
 * @param {string} event
 * @param {ProxyAnswer} answer
 * @returns {any} an answer of the contract
 * @throws {Error} a Disconnect, a ReplyError, or a CallFailed: kind `base64`, or an UnknownRestriction
 */
export function readAnswer(event, { result, error, disconnect }) {
  if (disconnect !== null) throw disconnectOf(disconnect)
  if (error !== null) throw new ReplyError(error.code, error.message, error.temporary)
  const [read, none] = READERS[event]
  return result === null ? none : read(result)
}

/**
 * @param {string} event @param {ProxyAnswer} answer
 * @returns {{fields: object, what: string} | null} for the log, if the answer says what it cannot
 */
export function faultOf(event, { error, disconnect }) {
  if (isRefresh(event)) {
    if (error === null && disconnect === null) return null
    return { fields: { error, disconnect }, what: 'more than "expired": it can say no more' }
  }
  if (disconnect === null || isUsable(disconnect.code)) return null
  const { code } = disconnect
  return { fields: { code }, what: 'a disconnect code outside of 3000 to 4999: 3004 is used' }
}

/** @type {RefreshAnswer} */
export const UNREADABLE = Object.freeze({ expireAt: 1, unreadable: true })

/** Events whose answers can only prolong or end: an error means the end. */
export const isRefresh = (/** @type {string} */ event) => event === 'refresh' || event === 'sub_refresh'
