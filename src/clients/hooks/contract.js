// The contract of hooks: application code in the worker's process (module.js), or event proxies over HTTP and gRPC. May
// import protocol, config and errors. Events without a handler cost nothing, synchronous results cost no promise, and
// no result can harm other clients or the worker.

import { Disconnect, ReplyError } from '../../base/errors.js'

/** @import { ChannelOptions } from '../../config/options.js' */
/** @import { Filter } from '../protocol/filter.js' */
/** @import { Payload } from '../protocol/payload.js' */
/** @import { Capabilities } from './capabilities.js' */
/** @import { Labels } from './labels.js' */
/** @import { MapPublish } from '../../channels/broker/contract.js' */
/** @import { CacheEmptyEvent, ChannelStateEvent, ConnectEvent, DisconnectedEvent, HookEvent, MapPublishEvent, MapRemoveEvent, PublishEvent, RefreshEvent,
 *   RpcEvent, SharedPollRefreshEvent, SubRefreshEvent, SubscribeEvent, UnsubscribedEvent } from './events.js' */

/**
 * `info` and `meta` are JSON text on one line, times are unix s.
 * @typedef {{presence?: boolean, join_leave?: boolean, force_recovery?: boolean, force_positioning?: boolean,
 *   force_push_join_leave?: boolean}} Override of channel options; absent: the namespace's
 *
 * @typedef {object} SubscriptionAnswer allows a subscription
 * @property {string} [info]
 * @property {Payload} [data] for the subscribe result
 * @property {number} [expireAt] absent or 0: never
 * @property {Override} [override]
 * @property {boolean} [cacheRecover] in cache mode, recovers without a position
 * @property {boolean} [ignoreFlags] ignores client flags for recovery, positions, joins and leaves
 * @property {number} [allow] operations on the channel: bits of Operation
 * @property {Filter} [filter] of its publications
 *
 * @typedef {object} ConnectAnswer absent fields come from the token
 * @property {string} [user] '' = anonymous
 * @property {number} [expireAt] 0 = never
 * @property {string} [info]
 * @property {Payload} [data] for the connect result
 * @property {string} [meta] never sent to the client
 * @property {Map<string, SubscriptionAnswer>} [subs] added to the token's
 * @property {Capabilities | null} [caps]
 * @property {Labels | null} [labels] null: none
 *
 * @typedef {object} RefreshAnswer
 * @property {number} expireAt 0 or less: a connection has expired, a subscription never expires
 * @property {string} [info] absent: unchanged
 * @property {string} [meta] absent: unchanged; only for connections
 * @property {Capabilities | null} [caps] absent: unchanged; only for connections
 * @property {Filter} [filter] of publications; absent: unchanged; only for subscriptions
 * @property {boolean} [unreadable] ends a connection with 3004; with an `expireAt` in the past, a subscription expires
 *
 * @typedef {object} PublishAnswer allows a publication
 * @property {Payload} [data] replaces the client's data
 * @property {boolean} [skipHistory]
 * @property {Record<string, string>} [tags]
 * @property {string} [idempotencyKey]
 * @property {boolean} [delta] absent: the namespace's option
 * @property {bigint} [version] with `versionEpoch`; drops older publications
 * @property {string} [versionEpoch]
 * @property {boolean} [excludeSender] not for the client's connection; absent: the namespace's option
 *
 * @typedef {object} MapPublishAnswer allows a publish to a map
 * @property {string} [key] replaces the key
 * @property {Payload} [data] replaces the client's data
 * @property {Record<string, string>} [tags]
 * @property {MapPublish['keyMode']} [keyMode]
 * @property {Payload} [streamData] for subscribers, in place of the data
 * @property {string} [idempotencyKey]
 * @property {boolean} [delta] absent: the namespace's option
 * @property {bigint} [version] with `versionEpoch`; drops older publications of the key
 * @property {string} [versionEpoch]
 *
 * Allows a removal; `key` replaces the key.
 * @typedef {{key?: string, tags?: Record<string, string>, idempotencyKey?: string}} MapRemoveAnswer
 *
 * Current data of keys of a shared poll. `version`: 0n = none; `epoch`: of the versions, '' = none.
 * @typedef {{key: string, data: Payload, version: bigint, removed: boolean}} PollAnswerItem
 * @typedef {{items: PollAnswerItem[], epoch: string}} PollAnswer
 *
 * `populated`: the backend has published to the channel.
 * @typedef {{populated: boolean}} CacheEmptyAnswer
 *
 * @typedef {{data?: Payload}} RpcAnswer
 */

/**
 * @template {HookEvent} E
 * @template A
 * @typedef {object} Handler
 * @property {(event: E) => A | null | Promise<A | null>} call null: the next rule applies (on refresh: expired).
 *   Refuses with a ReplyError or a Disconnect; any other error is a failed call
 * @property {number} timeout promise timeout, ms; 0 = none
 * @property {string} name in log lines: `publish hook`, `http publish proxy "chat"` ...
 * @property {(kind: string) => void} [failed] counts a failed call: CallFailed.kind, or `throw`
 */

/**
 * @typedef {object} ChannelHandlers of one namespace
 * @property {Handler<SubscribeEvent, SubscriptionAnswer> | null} subscribe
 * @property {Handler<PublishEvent, PublishAnswer> | null} publish
 * @property {Handler<SubRefreshEvent, RefreshAnswer> | null} subRefresh
 * @property {Handler<MapPublishEvent, MapPublishAnswer> | null} mapPublish
 * @property {Handler<MapRemoveEvent, MapRemoveAnswer> | null} mapRemove
 * @property {Handler<SharedPollRefreshEvent, PollAnswer> | null} pollRefresh
 * @property {Handler<CacheEmptyEvent, CacheEmptyAnswer> | null} cacheEmpty
 * @property {readonly Handler<ChannelStateEvent, boolean>[]} channelState false: not accepted, repeat it
 */

/**
 * @typedef {object} Handlers of one configuration; null and []: none
 * @property {Handler<ConnectEvent, ConnectAnswer> | null} connect
 * @property {boolean} connectWithToken calls `connect` also with a valid token
 * @property {Handler<RefreshEvent, RefreshAnswer> | null} refresh
 * @property {(namespace: string, options: ChannelOptions) => ChannelHandlers} channel
 * @property {((method: string) => Handler<RpcEvent, RpcAnswer> | null) | null} rpc null: unknown method. Throws
 *   errors.methodNotFound or errors.notAvailable
 * @property {readonly Handler<DisconnectedEvent, any>[]} disconnected
 * @property {readonly Handler<UnsubscribedEvent, any>[]} unsubscribed
 * @property {readonly string[]} headers request headers (lower case) for events after connect
 * @property {readonly string[]} emulatedHeaders names from `headers` in the connect request
 * @property {boolean} allHeaders `connect` needs every request header
 * @property {() => void | Promise<void>} close called after the last event
 */

/** @type {ChannelHandlers} */
export const NO_CHANNEL_HANDLERS = Object.freeze({
  subscribe: null,
  publish: null,
  subRefresh: null,
  mapPublish: null,
  mapRemove: null,
  pollRefresh: null,
  cacheEmpty: null,
  channelState: [],
})

/** @type {Handlers} */
export const NO_HANDLERS = Object.freeze({
  connect: null,
  connectWithToken: false,
  refresh: null,
  channel: () => NO_CHANNEL_HANDLERS,
  rpc: null,
  disconnected: [],
  unsubscribed: [],
  headers: [],
  emulatedHeaders: [],
  allHeaders: false,
  close() {},
})

/** Marks errors of `reject` and `disconnect`, also from another copy of this package. */
export const REFUSAL = Symbol.for('halley.refusal')

/** @param {any} error from a handler @returns {ReplyError | Disconnect | null} null: not a refusal */
export function refusalOf(error) {
  if (error instanceof ReplyError || error instanceof Disconnect) return error
  if (!(error instanceof Error) || !(REFUSAL in error)) return null
  const { code, reason, temporary } = /** @type {any} */ (error)
  return reason === undefined ? new ReplyError(code, error.message, temporary) : new Disconnect(code, reason)
}

/** @param {any} answer @returns {answer is Promise<any>} */
export const isPromise = answer =>
  typeof answer === 'object' && answer !== null && typeof answer.then === 'function'

/** A handler threw, timed out, or returned an invalid result. The client gets error 100. */
export class CallFailed extends Error {
  /** @param {string} message @param {string} kind for metrics: timeout, throw ... */
  constructor(message, kind) {
    super(message)
    this.kind = kind
  }
}

/**
 * @typedef {object} Lifecycle observes sessions
 * @property {(session: any) => void} connected
 * @property {(session: any, channel: string) => void} subscribed
 * @property {(session: any, channel: string, code: number, reason: string) => void} unsubscribed code 0: by the client
 * @property {(session: any, end: {code: number, reason: string}, channels: string[]) => void} disconnected called
 *   once; delayed on mass disconnects
 */

/** @param {(Lifecycle | null)[]} candidates @returns {Lifecycle | null} */
export function observeAll(candidates) {
  const observers = candidates.filter(candidate => candidate !== null)
  if (observers.length < 2) return observers[0] ?? null
  return {
    connected(session) {
      for (const observer of observers) observer.connected(session)
    },
    subscribed(session, channel) {
      for (const observer of observers) observer.subscribed(session, channel)
    },
    unsubscribed(session, channel, code, reason) {
      for (const observer of observers) observer.unsubscribed(session, channel, code, reason)
    },
    disconnected(session, end, channels) {
      for (const observer of observers) observer.disconnected(session, end, channels)
    },
  }
}
