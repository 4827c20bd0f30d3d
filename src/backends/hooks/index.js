// `halley-gateway/hooks`: API for hooks modules (docs/hooks.md).

import { Disconnect, ReplyError } from '../../base/errors.js'
import { REFUSAL } from '../../clients/hooks/contract.js'

/** @import { CacheEmptyEvent, ChannelStateEvent, ConnectEvent, DisconnectedEvent, MapPublishEvent, MapRemoveEvent, PublishEvent, RefreshEvent, RpcEvent, SharedPollRefreshEvent, SubRefreshEvent, SubscribeEvent, UnsubscribedEvent } from '../../clients/hooks/events.js' */
/** @import { ServerApi } from '../api/server-api.js' */

// Types of a hooks module, for editors and TypeScript. Every handler may return its result or a promise.

/**
 * @template T
 * @typedef {T | undefined | void | Promise<T | undefined | void>} Answer undefined: the next rule applies
 */

/**
 * @typedef {object} SubscriptionOptions
 * @property {any} [info] JSON value visible in presence, joins and publications
 * @property {any} [data] for the client: a JSON value, or a Uint8Array
 * @property {number | Date} [expireAt] unix seconds; 0: never
 * @property {boolean} [cacheRecover] in cache mode, also send the latest publication to clients without a position
 * @property {{presence?: boolean, joinLeave?: boolean, forceRecovery?: boolean, forcePositioning?: boolean,
 *   forcePushJoinLeave?: boolean}} [override] replaces options of the namespace
 * @property {('pub' | 'prs' | 'hst' | 'sub')[]} [allow] what the client may do beside the channel options: publish, read
 *   presence, read history; `sub` is implied
 * @property {TagsFilter} [serverTagsFilter] only publications whose tags match reach the client
 */

/**
 * @typedef {object} TagsFilter as the client's `tf`: a comparison with a tag, or a combination of filters
 * @property {'and' | 'or' | 'not'} [op] of `nodes`
 * @property {string} [key] of the tag
 * @property {'eq' | 'neq' | 'in' | 'nin' | 'ex' | 'nex' | 'sw' | 'ew' | 'ct' | 'gt' | 'gte' | 'lt' | 'lte'} [cmp]
 * @property {string} [val]
 * @property {string[]} [vals] of `in` and `nin`
 * @property {TagsFilter[]} [nodes]
 */

/**
 * @typedef {object} Capability of a connection: operations on channels, beside the channel options
 * @property {string[]} channels names, or patterns
 * @property {('sub' | 'pub' | 'prs' | 'hst')[]} allow subscribe, publish, read presence, read history
 * @property {'exact' | 'wildcard' | 'regex'} [match] of the names; default: exact
 */

/**
 * @typedef {object} Connect accepts the client; without token, absent fields mean: anonymous, never expires, none
 * @property {string} [user] '' = anonymous
 * @property {any} [info] JSON value visible in presence, joins and publications
 * @property {any} [data] for the client: a JSON value, or a Uint8Array
 * @property {number | Date} [expireAt] unix seconds; 0: never
 * @property {any} [meta] JSON value for later events; not sent to clients
 * @property {string[] | Record<string, SubscriptionOptions>} [subscriptions] server-side
 * @property {Capability[]} [caps]
 * @property {Record<string, string>} [labels] for the server API and later events; absent: those of the token
 */

/**
 * @typedef {object} Refresh
 * @property {number | Date} [expireAt] unix seconds. 0: a subscription never expires; a connection has expired
 * @property {boolean} [expired]
 * @property {any} [info] JSON value; absent: unchanged
 * @property {any} [meta] JSON value; absent: unchanged. Not for subscriptions
 * @property {Capability[]} [caps] absent: unchanged. Not for subscriptions
 * @property {TagsFilter} [serverTagsFilter] absent: unchanged. Only for subscriptions
 */

/**
 * @typedef {object} Publish accepts the publication
 * @property {any} [data] instead of the client's: a JSON value, or a Uint8Array
 * @property {boolean} [skipHistory]
 * @property {Record<string, string>} [tags]
 * @property {string} [idempotencyKey]
 * @property {boolean} [delta] default: of the namespace
 * @property {number | bigint} [version]
 * @property {string} [versionEpoch]
 * @property {boolean} [excludeSender] not for the client's connection; default: of the namespace
 */

/**
 * @typedef {object} MapPublish accepts the publish of a key
 * @property {string} [key] instead of the client's
 * @property {any} [data] instead of the client's: a JSON value, or a Uint8Array
 * @property {any} [streamData] sent to subscribers in place of the data, which the map keeps
 * @property {'if_new' | 'if_exists'} [keyMode] default: both
 * @property {Record<string, string>} [tags]
 * @property {string} [idempotencyKey]
 * @property {boolean} [delta] default: of the namespace
 * @property {number | bigint} [version] drops older publications of the key
 * @property {string} [versionEpoch]
 */

/**
 * @typedef {object} MapRemove accepts the removal of a key
 * @property {string} [key] instead of the client's
 * @property {Record<string, string>} [tags] default: of the entry
 * @property {string} [idempotencyKey]
 */

/**
 * @typedef {object} SharedPollItem data of a key
 * @property {string} key
 * @property {any} [data] a JSON value, or a Uint8Array
 * @property {number | bigint} [version] with `mode: 'versioned'`: grows with each change
 * @property {boolean} [removed] the key does not exist: clients no longer track it
 */

/**
 * @typedef {object} SharedPollRefresh
 * @property {SharedPollItem[]} items keys that are left out have not changed
 * @property {string} [epoch] of the versions; when it changes, clients start again
 */

/**
 * @typedef {object} CacheEmpty
 * @property {boolean} [populated] the handler has published to the channel: the gateway reads it once more
 */

/** @typedef {(event: RpcEvent) => any} Method a JSON value, a Uint8Array or nothing, or a promise of it */

/**
 * @typedef {object} Hooks
 * @property {(event: ConnectEvent) => Answer<Connect>} [connect]
 * @property {(event: RefreshEvent) => Answer<Refresh>} [refresh]
 * @property {(event: SubscribeEvent) => Answer<SubscriptionOptions>} [subscribe]
 * @property {(event: SubRefreshEvent) => Answer<Refresh>} [subRefresh]
 * @property {(event: PublishEvent) => Answer<Publish>} [publish]
 * @property {(event: MapPublishEvent) => Answer<MapPublish>} [mapPublish]
 * @property {(event: MapRemoveEvent) => Answer<MapRemove>} [mapRemove]
 * @property {(event: SharedPollRefreshEvent) => Answer<SharedPollRefresh>} [sharedPollRefresh]
 * @property {(event: CacheEmptyEvent) => Answer<CacheEmpty>} [cacheEmpty]
 * @property {(event: ChannelStateEvent) => any} [channelState] after an error or a rejected promise it is called again
 * @property {Method | Record<string, Method>} [rpc]
 * @property {(event: DisconnectedEvent) => any} [disconnected]
 * @property {(event: UnsubscribedEvent) => any} [unsubscribed]
 * @property {(gateway: ServerApi) => any} [started] once per worker, before it accepts clients; a promise is awaited,
 *   and a failure aborts the start of the worker
 * @property {() => any} [stopping] once per worker, after its last client; a promise is awaited, with a timeout
 * @property {readonly string[]} [headers] request headers available in events after connect
 */

/** Application close codes known to SDKs; 3000 to 3999 belong to the protocol. */
const MIN_CODE = 3000
const MAX_CODE = 4999
const MAX_REASON_BYTES = 123

/**
 * The application may load another copy of this package.
 * @template {Error} T
 * @param {T} error @returns {T}
 */
const marked = error => Object.assign(error, { [REFUSAL]: true })

/**
 * Rejects the request: `throw reject(4000, 'closed today')`. The client stays connected.
 * @param {number} code integer from 0 to 4294967295; use 400 to 1999 or 4000 to 4999 for your own
 * @param {string} message for the client
 * @param {{temporary?: boolean}} [options] `temporary`: the SDK retries
 * @returns {Error}
 */
export function reject(code, message, { temporary = false } = {}) {
  if (!Number.isInteger(code) || code < 0 || code > 0xffffffff)
    throw new TypeError(`reject: code ${code} is not an integer from 0 to 4294967295`)
  return marked(new ReplyError(code, String(message), temporary))
}

/**
 * Closes the connection: `throw disconnect(4500, 'banned')`. SDKs reconnect unless the code is 3500 to 3999 or 4500
 * to 4999.
 * @param {number} code 3000 to 4999; use 4000 or more for your own
 * @param {string} reason at most 123 bytes
 * @returns {Error}
 */
export function disconnect(code, reason) {
  if (!Number.isInteger(code) || code < MIN_CODE || code > MAX_CODE)
    throw new TypeError(`disconnect: code ${code} is not an integer from ${MIN_CODE} to ${MAX_CODE}`)
  if (typeof reason !== 'string' || reason === '' || Buffer.byteLength(reason) > MAX_REASON_BYTES)
    throw new TypeError(`disconnect: reason must be a string of 1 to ${MAX_REASON_BYTES} bytes`)
  return marked(new Disconnect(code, reason))
}

/**
 * Returns its argument, typed for editors and TypeScript: `export default defineHooks({ ... })`.
 * @param {Hooks} hooks
 * @returns {Hooks}
 */
export const defineHooks = hooks => hooks
