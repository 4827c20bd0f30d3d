// Types of a hooks module, for editors and TypeScript. Every handler may return its answer or a promise of it.

/** @import { ServerApi } from '../api/server-api.js' */
/** @import { ConnectEvent, DisconnectedEvent, PublishEvent, RefreshEvent, RpcEvent, SubRefreshEvent, SubscribeEvent,
 *   UnsubscribedEvent } from '../../clients/hooks/events.js' */

/**
 * @template T
 * @typedef {T | undefined | void | Promise<T | undefined | void>} Answer nothing: the next rule decides
 */

/**
 * @typedef {object} SubscriptionOptions
 * @property {any} [info] JSON value that others see in presence, joins and publications
 * @property {any} [data] for the client: a JSON value, or a Uint8Array
 * @property {number | Date} [expireAt] unix seconds; 0: never
 * @property {boolean} [cacheRecover] in cache mode, send the latest publication also to a client without a position
 * @property {{presence?: boolean, joinLeave?: boolean, forceRecovery?: boolean, forcePositioning?: boolean,
 *   forcePushJoinLeave?: boolean}} [override] replaces options of the namespace
 */

/**
 * @typedef {object} Connect admits the client; without token, absent fields mean: anonymous, never expires, none
 * @property {string} [user] '' = anonymous
 * @property {any} [info] JSON value that others see in presence, joins and publications
 * @property {any} [data] for the client: a JSON value, or a Uint8Array
 * @property {number | Date} [expireAt] unix seconds; 0: never
 * @property {any} [meta] JSON value that later events have; no client sees it
 * @property {string[] | Record<string, SubscriptionOptions>} [subscriptions] of the server
 */

/**
 * @typedef {object} Refresh
 * @property {number | Date} [expireAt] unix seconds. 0: a subscription never expires; a connection has expired
 * @property {boolean} [expired]
 * @property {any} [info] JSON value; absent: unchanged
 * @property {any} [meta] JSON value; absent: unchanged. Not for subscriptions
 */

/**
 * @typedef {object} Publish lets the publication pass
 * @property {any} [data] instead of the client's: a JSON value, or a Uint8Array
 * @property {boolean} [skipHistory]
 * @property {Record<string, string>} [tags]
 * @property {string} [idempotencyKey]
 * @property {boolean} [delta] absent: as the namespace says
 * @property {number | bigint} [version]
 * @property {string} [versionEpoch]
 */

/** @typedef {(event: RpcEvent) => any} Method a JSON value, a Uint8Array or nothing, or a promise of it */

/**
 * @typedef {object} Hooks
 * @property {(event: ConnectEvent) => Answer<Connect>} [connect]
 * @property {(event: RefreshEvent) => Answer<Refresh>} [refresh]
 * @property {(event: SubscribeEvent) => Answer<SubscriptionOptions>} [subscribe]
 * @property {(event: SubRefreshEvent) => Answer<Refresh>} [subRefresh]
 * @property {(event: PublishEvent) => Answer<Publish>} [publish]
 * @property {Method | Record<string, Method>} [rpc]
 * @property {(event: DisconnectedEvent) => any} [disconnected]
 * @property {(event: UnsubscribedEvent) => any} [unsubscribed]
 * @property {(gateway: ServerApi) => any} [started] once in each worker, before it accepts
 *   clients; a promise is awaited, and a failure stops the start of the worker
 * @property {() => any} [stopping] once in each worker, after its last client; a promise is awaited for a while
 * @property {readonly string[]} [headers] of requests that events after connect have
 */

export {}
