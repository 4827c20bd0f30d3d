// The contract of hooks: the application's code decides what clients may do. Two kinds of implementations: a module in
// the worker's process (module.js), and event proxies over HTTP or gRPC. A session asks a handler and does not know who
// answers. May import protocol, config and errors. Promises: an event without a handler costs nothing, a handler that
// answers at once costs no promise, and no answer of a handler can harm another client or the worker.

import { Disconnect, ReplyError } from '../../base/errors.js'

/** @import { ChannelOptions } from '../../config/options.js' */
/** @import { Payload } from '../protocol/payload.js' */
/** @import { ConnectEvent, DisconnectedEvent, HookEvent, PublishEvent, RefreshEvent, RpcEvent, SubRefreshEvent,
 *   SubscribeEvent, UnsubscribedEvent } from './events.js' */

// Answers. Payloads keep their text: `info` and `meta` are JSON on one line, `data` is a Payload.

/**
 * @typedef {object} Override channel options for one subscription; absent: as the namespace says
 * @property {boolean} [presence]
 * @property {boolean} [join_leave]
 * @property {boolean} [force_recovery]
 * @property {boolean} [force_positioning]
 * @property {boolean} [force_push_join_leave]
 */

/**
 * @typedef {object} SubscriptionAnswer allows a subscription
 * @property {string} [info] channel info
 * @property {Payload} [data] for the client, in the subscribe result
 * @property {number} [expireAt] unix s; absent or 0: never
 * @property {Override} [override]
 * @property {boolean} [cacheRecover] in cache mode, recover without a position of the client
 * @property {boolean} [ignoreFlags] recovery, positions, joins and leaves are as the namespace and `override` say: the
 *   client cannot request them
 */

/**
 * @typedef {object} ConnectAnswer admits a client
 * @property {string} [user] '' = anonymous; absent: that of the token, else anonymous
 * @property {number} [expireAt] unix s, 0 = never; absent: that of the token, else never
 * @property {string} [info] connection info; absent: that of the token
 * @property {Payload} [data] for the client, in the connect result
 * @property {string} [meta] kept with the connection, never sent to the client
 * @property {Map<string, SubscriptionAnswer>} [subs] server-side subscriptions, beside those of the token
 */

/**
 * @typedef {object} RefreshAnswer
 * @property {number} expireAt unix s. 0 or less: of a connection, expired now; of a subscription, it never expires
 * @property {string} [info] absent: unchanged
 * @property {string} [meta] absent: unchanged; connections only
 * @property {boolean} [unreadable] the answer of a backend that cannot be read: a connection ends with 3004. With an
 *   `expireAt` in the past: a subscription has expired
 */

/**
 * @typedef {object} PublishAnswer lets a publication pass
 * @property {Payload} [data] replaces the client's data
 * @property {boolean} [skipHistory]
 * @property {Record<string, string>} [tags]
 * @property {string} [idempotencyKey]
 * @property {boolean} [delta] may be sent as a delta; absent: as the namespace says
 * @property {bigint} [version] with `versionEpoch`: an older publication is dropped
 * @property {string} [versionEpoch]
 */

/** @typedef {{data?: Payload}} RpcAnswer */

/**
 * Decides one kind of event.
 * @template {HookEvent} E
 * @template A
 * @typedef {object} Handler
 * @property {(event: E) => A | null | Promise<A | null>} call `null`: no answer, the next rule decides (of refreshes:
 *   it has expired). Throws or rejects with a ReplyError or a Disconnect to refuse; every other error is a failed call
 * @property {number} timeout ms until a promise is a failed call; 0 = none
 * @property {string} name in log lines: `publish hook`, `http publish proxy "chat"` ...
 * @property {(kind: string) => void} [failed] counts a failed call: CallFailed.kind, or `throw`
 */

/**
 * @typedef {object} ChannelHandlers of one namespace
 * @property {Handler<SubscribeEvent, SubscriptionAnswer> | null} subscribe
 * @property {Handler<PublishEvent, PublishAnswer> | null} publish
 * @property {Handler<SubRefreshEvent, RefreshAnswer> | null} subRefresh
 */

/**
 * The handlers of one configuration; a reload makes new ones. `null` and an empty list: nobody is asked.
 * @typedef {object} Handlers
 * @property {Handler<ConnectEvent, ConnectAnswer> | null} connect
 * @property {boolean} connectWithToken whether `connect` is also asked for a client with a good token
 * @property {Handler<RefreshEvent, RefreshAnswer> | null} refresh
 * @property {(namespace: string, options: ChannelOptions) => ChannelHandlers} channel options of the namespace, frozen; called
 *   once for each namespace of a configuration
 * @property {((method: string) => Handler<RpcEvent, RpcAnswer> | null) | null} rpc null: an unknown method. Throws
 *   errors.methodNotFound or errors.notAvailable
 * @property {readonly Handler<DisconnectedEvent, any>[]} disconnected
 * @property {readonly Handler<UnsubscribedEvent, any>[]} unsubscribed
 * @property {readonly string[]} headers names (lower case) of the request headers that events after connect need
 * @property {readonly string[]} emulatedHeaders the same of `headers` in the connect request
 * @property {boolean} allHeaders whether `connect` needs every request header
 * @property {() => void | Promise<void>} close called when no event of these handlers can follow
 */

/** @type {ChannelHandlers} */
export const NO_CHANNEL_HANDLERS = Object.freeze({ subscribe: null, publish: null, subRefresh: null })

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

/** Marks errors of `reject` and `disconnect`, also those of another copy of this package. */
export const REFUSAL = Symbol.for('halley.refusal')

/**
 * @param {any} error what a handler threw @returns {ReplyError | Disconnect | null} null: it is no refusal
 */
export function refusalOf(error) {
  if (error instanceof ReplyError || error instanceof Disconnect) return error
  if (!(error instanceof Error) || !(REFUSAL in error)) return null
  const { code, reason, temporary } = /** @type {any} */ (error)
  return reason === undefined ? new ReplyError(code, error.message, temporary) : new Disconnect(code, reason)
}

/** @param {any} answer @returns {answer is Promise<any>} of any library */
export const isPromise = answer =>
  typeof answer === 'object' && answer !== null && typeof answer.then === 'function'

/** A handler failed: it threw, gave no answer in time, or a wrong one. The client gets error 100. */
export class CallFailed extends Error {
  /** @param {string} message what went wrong, for the log @param {string} kind for metrics: timeout, throw ... */
  constructor(message, kind) {
    super(message)
    this.kind = kind
  }
}

/** An answer restricts a subscription in a way that is not supported: without it, the answer would allow too much. */
export class UnknownRestriction extends CallFailed {
  /** @param {string} field of the answer */
  constructor(field) {
    super(`the answer has ${field}, which is not supported`, 'answer')
  }
}

/**
 * Observes sessions. The context has null if nobody does.
 * @typedef {object} Lifecycle
 * @property {(session: any) => void} connected
 * @property {(session: any, channel: string) => void} subscribed
 * @property {(session: any, channel: string, code: number, reason: string) => void} unsubscribed code 0: by the client.
 *   Not called for the subscriptions of a session that ends
 * @property {(session: any, end: {code: number, reason: string}, channels: string[]) => void} disconnected once for each
 *   connected session; after a mass leave, a little later
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
