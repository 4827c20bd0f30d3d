// Backend responses -> results of the contract. Transports only decode.

import { Disconnect, disconnects, ReplyError } from '../../base/errors.js'
import { readAllow } from '../../clients/hooks/capabilities.js'
import { CallFailed } from '../../clients/hooks/contract.js'
import { readLabels } from '../../clients/hooks/labels.js'
import { readServerFilter } from '../../clients/protocol/filter.js'
import {
  bytesPayload,
  decodeBase64,
  NO_PAYLOAD,
  textPayload,
  toJson,
} from '../../clients/protocol/payload.js'
import { closeReason } from '../../clients/server/text.js'

/** @import { Capabilities, CapabilitySets } from '../../clients/hooks/capabilities.js' */
/** @import { Payload } from '../../clients/protocol/payload.js' */
/** @import { CacheEmptyAnswer, ConnectAnswer, MapPublishAnswer, MapRemoveAnswer, Override, PollAnswer, PublishAnswer, RefreshAnswer, RpcAnswer, SubscriptionAnswer } from '../../clients/hooks/contract.js' */

/**
 * A decoded response. `result` has checked fields of the proxy protocol: strings, numbers (int64), bigints (uint64),
 * booleans, lists and objects. `data`, `info` and `meta` are JSON text on one line, or unchecked bytes.
 * @typedef {{result: Record<string, any> | null, error: {code: number, message: string, temporary: boolean} | null,
 *   disconnect: {code: number, reason: string} | null}} ProxyAnswer
 */

/** @param {Record<string, any>} members of the response @returns {ProxyAnswer} with defaults */
export const answerOf = ({ result, error, disconnect }) => ({
  result: result ?? null,
  error: error ? { code: 0, message: '', temporary: false, ...error } : null,
  disconnect: disconnect ? { code: 0, reason: '', ...disconnect } : null,
})

const DEFAULT_REASON = 'disconnected'

/** @param {number} code of a disconnect */
const isUsable = code => code >= 3000 && code <= 4999

/** @param {{code: number, reason: string}} given @returns {Disconnect} 3004 for codes unknown to clients */
const disconnectOf = ({ code, reason }) =>
  new Disconnect(isUsable(code) ? code : disconnects.internal.code, closeReason(reason) || DEFAULT_REASON)

/** @param {string | Buffer} raw of `data` @returns {Payload} */
const payloadOf = raw => (typeof raw === 'string' ? textPayload(raw) : bytesPayload(raw))

// A copy: it lives as long as the connection, and a substring retains the whole response.
/** @param {string | Buffer} raw of `info` or `meta` @returns {string} JSON text */
const jsonOf = raw => (typeof raw === 'string' ? Buffer.from(raw).toString() : toJson(raw))

/** @param {string} text @param {string} field @returns {Buffer} @throws {CallFailed} */
function bytesOf(text, field) {
  const bytes = decodeBase64(text)
  if (bytes === undefined) throw new CallFailed(`${field} of the response is not base64`, 'base64')
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
  // Protobuf default: an object without `value` is false.
  for (const [name, { value = false }] of Object.entries(given)) override[name] = value
  return override
}

/** @type {SubscriptionAnswer} */
const NO_OPTIONS = Object.freeze({})

/** @template T @param {() => T} read @returns {T} @throws {CallFailed} */
function checked(read) {
  try {
    return read()
  } catch (error) {
    throw new CallFailed(`the response is invalid: ${error.message}`, 'response')
  }
}

/**
 * @param {Record<string, any>} result @param {CapabilitySets} capabilities
 * @returns {Capabilities | null | undefined} undefined: absent
 */
const capsOf = ({ caps }, capabilities) =>
  caps === undefined ? undefined : checked(() => capabilities.read(caps))

/** @param {Record<string, any>} fields */
const filterOf = ({ server_tags_filter: filter }) =>
  filter === undefined ? undefined : checked(() => readServerFilter(filter))

/** @param {Record<string, any>} options @returns {SubscriptionAnswer} */
function subscriptionOf(options) {
  return {
    info: infoOf(options),
    data: dataOf(options),
    expireAt: Math.max(0, options.expire_at ?? 0),
    override: overrideOf(options.override),
    cacheRecover: options.cache_recover,
    filter: filterOf(options),
  }
}

/** @param {Record<string, any>} result @param {CapabilitySets} capabilities @returns {ConnectAnswer} */
function connectAnswer(result, capabilities) {
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
    caps: capsOf(result, capabilities),
    labels: checked(() => readLabels(result.labels)),
  }
}

/** The backend controls recovery and positions: client flags have no effect. */
const ALLOWED = Object.freeze({ ignoreFlags: true })

/** @param {Record<string, any>} result @returns {SubscriptionAnswer} */
const subscribeAnswer = result => ({
  ...subscriptionOf(result),
  cacheRecover: undefined,
  ignoreFlags: true,
  allow: checked(() => readAllow(result.allow)),
})

/**
 * @param {Record<string, any>} result @param {CapabilitySets} capabilities
 * @returns {RefreshAnswer | null} null: expired
 */
function refreshAnswer(result, capabilities) {
  if (result.expired) return null
  return {
    expireAt: result.expire_at ?? 0,
    info: infoOf(result),
    meta: result.meta === undefined ? undefined : jsonOf(result.meta),
    caps: capsOf(result, capabilities),
    filter: filterOf(result),
  }
}

/**
 * Unlike other events: `data` first, even null.
 * @param {string | Buffer | undefined} data @param {string | undefined} b64data @param {string} name of `b64data`
 * @returns {Payload | undefined}
 */
function payloadIn(data, b64data, name) {
  const given =
    data !== undefined ? payloadOf(data) : b64data ? bytesPayload(bytesOf(b64data, name)) : NO_PAYLOAD
  return given === NO_PAYLOAD ? undefined : given
}

/** @param {Record<string, string> | undefined} tags */
const tagsOf = tags => (tags !== undefined && Object.keys(tags).length > 0 ? tags : undefined)

/** @param {Record<string, any>} result @returns {PublishAnswer} */
function publishAnswer(result) {
  const { data, b64data, tags, skip_history, idempotency_key, delta, version, version_epoch } = result
  /** @type {PublishAnswer} */
  const answer = {}
  answer.data = payloadIn(data, b64data, 'b64data')
  answer.tags = tagsOf(tags)
  if (skip_history) answer.skipHistory = true
  if (idempotency_key) answer.idempotencyKey = idempotency_key
  answer.delta = delta ?? false
  if (version) answer.version = version
  if (version_epoch) answer.versionEpoch = version_epoch
  if (result.exclude_sender) answer.excludeSender = true
  return answer
}

const KEY_MODES = Object.freeze(['', 'if_new', 'if_exists'])

/** @param {Record<string, any>} result @returns {MapPublishAnswer} */
function mapPublishAnswer(result) {
  const { key, tags, key_mode: keyMode = '', stream_data, b64stream_data, delta = false } = result
  const { idempotency_key, version, version_epoch } = result
  if (!KEY_MODES.includes(keyMode)) throw new CallFailed(`key_mode of the response is ${keyMode}`, 'response')
  const stream = payloadIn(stream_data, b64stream_data, 'b64stream_data')
  return {
    key: key || undefined,
    data: payloadIn(result.data, result.b64data, 'b64data'),
    tags: tagsOf(tags),
    keyMode,
    streamData: stream,
    idempotencyKey: idempotency_key || undefined,
    delta,
    version: version || undefined,
    versionEpoch: version_epoch || undefined,
  }
}

/** @param {Record<string, any>} result @returns {MapRemoveAnswer} */
const mapRemoveAnswer = ({ key, tags, idempotency_key }) => ({
  key: key || undefined,
  tags: tagsOf(tags),
  idempotencyKey: idempotency_key || undefined,
})

/** @param {Record<string, any>} result @returns {PollAnswer} */
const pollAnswer = ({ items = [], epoch = '' }) => ({
  items: items.map(
    (/** @type {Record<string, any>} */ { key = '', data, version = 0n, removed = false }) => ({
      key,
      data: data === undefined ? NO_PAYLOAD : payloadOf(data),
      version,
      removed,
    }),
  ),
  epoch,
})

const UNCHANGED = Object.freeze({ delta: false })
const EMPTY = Object.freeze({})

/** @typedef {(result: Record<string, any>, capabilities: CapabilitySets) => any} Reader */
/** @type {Readonly<Record<string, [result: Reader, none: any]>>} */
const READERS = Object.freeze({
  connect: [connectAnswer, null],
  refresh: [refreshAnswer, null],
  subscribe: [subscribeAnswer, ALLOWED],
  sub_refresh: [refreshAnswer, null],
  publish: [publishAnswer, UNCHANGED],
  map_publish: [mapPublishAnswer, UNCHANGED],
  map_remove: [mapRemoveAnswer, EMPTY],
  shared_poll_refresh: [pollAnswer, null],
  cache_empty: [/** @returns {CacheEmptyAnswer} */ ({ populated = false }) => ({ populated }), null],
  // Without a result they are not accepted.
  state: [() => true, false],
  rpc: [/** @returns {RpcAnswer} */ result => ({ data: dataOf(result) }), EMPTY],
  disconnected: [() => null, null],
  unsubscribed: [() => null, null],
})

/**
 * @param {string} event
 * @param {ProxyAnswer} answer
 * @param {CapabilitySets} capabilities
 * @returns {any} a result of the contract
 * @throws {Error} a Disconnect, a ReplyError, or a CallFailed: kind `base64` or `response`
 */
export function readAnswer(event, { result, error, disconnect }, capabilities) {
  if (disconnect !== null) throw disconnectOf(disconnect)
  if (error !== null) throw new ReplyError(error.code, error.message, error.temporary)
  const [read, none] = READERS[event]
  return result === null ? none : read(result, capabilities)
}

/** @param {string} event @param {ProxyAnswer} answer @returns {{fields: object, message: string} | null} for the log */
export function faultOf(event, { error, disconnect }) {
  if (isRefresh(event)) {
    if (error === null && disconnect === null) return null
    return { fields: { error, disconnect }, message: 'refresh response: only "expired" is supported' }
  }
  if (disconnect === null || isUsable(disconnect.code)) return null
  const { code } = disconnect
  return { fields: { code }, message: 'disconnect code outside 3000 to 4999: using 3004' }
}

/** @type {RefreshAnswer} */
export const UNREADABLE = Object.freeze({ expireAt: 1, unreadable: true })

/** Refresh events only prolong or end; an error ends. @param {string} event */
export const isRefresh = event => event === 'refresh' || event === 'sub_refresh'
