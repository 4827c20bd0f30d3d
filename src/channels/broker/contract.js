// Broker contract: publish/subscribe with history, presence, maps, control between workers and nodes. An engine implements
// some parts (Engine); index.js assembles a worker's broker. All workers receive the publications of a channel in the
// same order. test/channels/broker/conformance.js tests every engine.

/** @import { Logger } from 'pino' */
/** @import { MapCounter } from '../../metrics/map-counter.js' */
/** @import { Target } from './target.js' */
/** @import { Denial, Denials } from './denials/contract.js' */
/** @import { Denylist } from './denylist.js' */

/**
 * @typedef {object} Publication
 * @property {Buffer} data payload; for JSON applications JSON text without line feeds
 * @property {number} offset position in the channel's stream, from 1; 0 = not in history
 * @property {string} epoch '' with offset 0
 * @property {number} [previous] offset of the previous publication, if it may differ from `offset - 1`
 * @property {string} info ClientInfo as JSON text, '' unless a client published it
 * @property {Record<string, string> | null} tags
 * @property {bigint} version 0n = none
 * @property {boolean} json `data` is JSON text or empty; if false, JSON clients cannot receive it
 * @property {boolean} delta may be sent as a delta against the previous publication (in a map: of its key)
 * @property {Keyed | null} keyed in a map channel; null in a stream
 * @property {Target | null} target of a stream; null: all subscribers
 *
 * Change of a map's key. `removed`: the key was removed, `data` is empty; `append`: `data` is a new part of the value;
 * `time`: unix ms of the write.
 * @typedef {{key: string, removed: boolean, append: boolean, time: number}} Keyed
 *
 * `historySize`: publications kept, 0 = no history; `historyTtl`: ms after the last publication; `metaTtl`: expiry of
 * offset and epoch, ms after the last use.
 * @typedef {{historySize: number, historyTtl: number, metaTtl: number}} HistoryRules
 *
 * @typedef {HistoryRules & {
 *   info?: string, tags?: Record<string, string> | null, idempotencyKey?: string,
 *   version?: bigint, versionEpoch?: string, json?: boolean, delta?: boolean, republish?: Route | null, meta?: string,
 *   keyed?: Keyed | null, target?: Target | null
 * }} PublishOptions `json: false`: the payload is neither JSON text nor empty; `meta`: the connection's meta as JSON
 *   text, for a route `withMeta`; `keyed`: of a direct publication of a shared poll, without history;
 *   `target`: with `users` without history
 *
 * @typedef {object} Route republishers of an accepted publication (docs/republish.md)
 * @property {number} to one bit per republisher
 * @property {number} block bits of those that reject the publication with errors.internal if their queue is full
 * @property {number} wait timeout of required confirms, ms; `done` then gets errors.internal. 0: do not wait
 * @property {number} source of the publication, see SOURCES of config/republish.js
 * @property {boolean} withMeta whether any of them needs the connection's meta
 *
 * `epoch`: '' = not checked. With more missed publications than `limit`, or two or more above about `maxBytes`,
 * recovery fails (`latest`: returns the newest that fit). 0: no limit. `latest` with a limit of 1 also returns older
 * publications if the newest one has a target.
 * @typedef {{offset: number, epoch: string, limit: number, maxBytes?: number}} Recover
 *
 * @typedef {object} SubscribeWants parts of a subscription, with one result
 * @property {boolean} first first subscription of this worker: on success, delivery of publications starts
 * @property {boolean} position return the position of the stream; creates a missing stream
 * @property {Recover | null} recover return the publications after this position
 * @property {boolean} latest cache recovery: return up to `limit` newest publications instead
 * @property {number} metaTtl ms, for `position`
 * @property {string} client client id for presence; '' = not listed
 * @property {string} info ClientInfo as JSON text, for presence
 * @property {boolean} leave announce a leave if this worker dies
 * @property {Tracking} [tracking] of the clients in presence; absent: none
 *
 * `offset`: top of the stream; `recovered`: in stream mode, `publications` (ascending) has all missed ones.
 * @typedef {{offset: number, epoch: string, recovered: boolean, publications: Publication[]}} SubscribeAnswer
 *
 * What follows from a change of the number of clients in a channel's presence. `events`: its first and its last client;
 * `interval`: least time between two calls of `occupancy`, ms, 0: none.
 * @typedef {{events: boolean, interval: number}} Tracking
 *
 * The channel got its first client, or has lost its last one. `id`: the same if the event is repeated; `time_ms`: unix
 * ms of the change.
 * @typedef {{id: string, channel: string, type: 'occupied' | 'vacated', time_ms: number}} StateEvent
 *
 * @typedef {object} HistoryFilter
 * @property {number} limit 0: position only, -1: all
 * @property {number} [sinceOffset] exclusive; undefined: from the oldest (with `reverse`: the newest)
 * @property {string} [sinceEpoch] '' = not checked
 * @property {boolean} [reverse] newest first
 * @property {number} [maxBytes] approximate size limit; the first publication is always returned. 0: no limit
 *
 * `offset`: top of the stream; `complete`: false if `maxBytes` cut the list.
 * @typedef {{publications: Publication[], offset: number, epoch: string, complete: boolean}} HistoryAnswer
 *
 * An accepted publication for republishers. `number`: of its confirm, 0: none; `to`, `source`: as in Route;
 * `time`: unix ms; `meta`: JSON text or ''; `publication` is valid only during the call.
 * @typedef {{number: number, to: number, source: number, time: number, channel: string, meta: string,
 *   publication: Publication}} Republication
 */

/**
 * Republishing over the bus; the republishers' process sets the limits.
 * @typedef {object} Republishing
 * @property {number} full one bit per republisher with a full queue
 * @property {(channel: string, data: string | Buffer, options: PublishOptions, offset: number, epoch: string,
 *   done: ((error: Error | null) => void) | null) => void} hand sends an accepted publication to its republishers.
 *   Keeps each caller's order. `done` is called when the required republishers have confirmed it
 * @property {(number: number, confirmed: boolean) => void} confirm confirms or rejects a numbered Republication
 * @property {(full: number) => void} report broadcasts `full` to all workers
 */

/**
 * Callbacks of a broker into its worker.
 * @typedef {object} BrokerEvents
 * @property {(channel: string, publication: Publication) => void} publication valid only during the call
 * @property {(channel: string, info: string, joined: boolean) => void} presence a join or a leave
 * @property {(channel: string, offset: number, epoch: string) => void} lost the next publication follows this position
 * @property {(channel: string) => void} [interrupted] publications without an offset may be missing, or a map was
 *   cleared
 * @property {(op: string, params: any, before: number) => any} survey returns a survey result, or a promise of it, or
 *   executes an order; if it throws or rejects, the survey fails. `before`: an order applies only to older connections,
 *   ms of performance.now()
 * @property {(then: () => void) => void} [executed] calls `then` when all orders passed to `survey` are executed
 * @property {() => void} [ordersLost] missed orders are lost: close all connections
 * @property {(publication: Republication) => void} [republish] in the republishers' process
 * @property {(channel: string, update: PollUpdate) => void} [pollUpdate] valid only during the call
 * @property {(channel: string, epoch: string) => void} [pollEpoch] the versions of a shared poll start again
 * @property {(channel: string, items: PollItem[], all: boolean, done: (result: PollResult | null) => void) => void}
 *   [refresh] asks the backend; `all`: also for unchanged keys; null: it failed. Call `done` once
 * @property {(denials: Denial[]) => void} [denied] added to the worker's copy of the denylist
 * @property {(events: StateEvent[], dropped: number, done: (accepted: boolean) => void) => void} [states] reports events
 *   to the backend; if it does not accept them, all are repeated later. `dropped`: events that the engine had no room
 *   for since the last call. Call `done` once
 * @property {(event: StateEvent) => void} [stateAdded] with an engine other than the node's own: before the first report
 * @property {(channel: string, clients: number, done: (published: boolean) => void) => void} [occupancy] publishes the
 *   number of clients. Call `done` once
 * @property {(channel: string) => Tracking | undefined} [tracking] of a channel in the current configuration
 * @property {() => boolean} [tracks] whether subscribers of any channel are tracked
 * @property {(request: Buffer, answer: (bytes: string | Buffer) => void) => void} called call from another worker;
 *   `request` is valid only during the call; call `answer` once, at any time, unless no response is expected
 */

/**
 * @typedef {(error: Error | null, answer: SubscribeAnswer) => void} SubscribeDone
 * @typedef {(error: Error | null, offset: number, epoch: string) => void} PositionDone
 * @typedef {(error: Error | null, answer: Buffer) => void} CallDone `answer` is valid only during the call
 * @typedef {(error: Error | null, admitted: boolean) => void} ClaimDone
 * @typedef {{start: () => void, close: () => void}} Part `start` is called once, first; `close` once, last
 */

/**
 * Publish/subscribe with history. It MUST
 * - deliver the publications of a channel to all workers in the order of their offsets;
 * - call `done` of `subscribe` and `position` in that order too: a subscribed worker has received all publications up
 *   to the returned offset and none after it. A session that joins the fan-out inside `done` therefore misses
 *   nothing and receives nothing twice;
 * - call every `done` exactly once, never before the method returns; with an error while the broker is unreachable;
 * - call `done` of `publish` after the delivery to this worker, if it is subscribed;
 * - limit the recovery and history bytes in transit to a worker, because they delay publications.
 *
 * After a reconnect a broker MUST deliver the missed publications of each channel of this worker in order before any
 * newer one, or call `lost`; and then `interrupted`. Requests during the outage fail with errors.internal, immediately
 * or after a timeout.
 * @typedef {Part & {
 *   subscribe: (channel: string, wants: SubscribeWants, done: SubscribeDone) => void,
 *   unsubscribe: (channel: string) => void,
 *   publish: (channel: string, data: string | Buffer, options: PublishOptions, done: PositionDone) => void,
 *   announce: (channel: string, info: string, joined: boolean) => void,
 *   history: (channel: string, filter: HistoryFilter, metaTtl: number) => Promise<HistoryAnswer>,
 *   position: (channel: string, metaTtl: number, done: PositionDone) => void,
 *   removeHistory: (channel: string) => Promise<void>
 * }} PubSub
 * - `unsubscribe`: the last subscription of this worker has ended
 * - `publish`: passes an accepted publication with `republish` to Republishing, except duplicates (idempotency key,
 *   version), in the order of the channel if known. Without history, returns offset 0 and epoch ''
 * - `announce`: publishes a join or a leave
 * - `history`: rejects with errors.unrecoverablePosition if the epoch differs or unread publications were trimmed;
 *   lists have no gaps
 * - `removeHistory`: keeps offset and epoch
 */

/**
 * Clients present in a channel, over all workers. `subscribe` adds them; the clients of a dead worker are removed.
 *
 * Channels with `tracking` of events are in one of three states:
 *
 *           first client: event            last client leaves
 *   EMPTY ----------------------> OCCUPIED -------------------> LEAVING
 *     ^                              ^                             |  |
 *     |                              +----- a client comes --------+  |
 *     +--------------------- event, after a delay --------------------+
 *
 * Events of a channel therefore alternate. They are reported in their order, at least once, one call at a time for each
 * partition of the channels. Without room for more events, `occupied` is not added, and the channel stays EMPTY until
 * the next change; `vacated` waits.
 * @typedef {Part & {
 *   update: (channel: string, client: string, info: string) => void,
 *   remove: (channel: string, client: string) => void,
 *   list: (channel: string) => Promise<Map<string, string>>,
 *   stats: (channel: string) => Promise<{clients: number, users: number}>
 * }} Presence
 * - `update`: replaces the ClientInfo of a present client of this worker; after an outage if necessary
 * - `list`: client id -> ClientInfo as JSON text
 * - `stats`: all anonymous clients count as one user
 */

/**
 * Retention of a map. `keyTtl`: ms after the last write of a key, 0: unlimited; `streamSize`: changes kept, 0: none, the
 * map is ephemeral and has no offsets; `streamTtl`, `metaTtl`: as `historyTtl` and `metaTtl` of a stream.
 * @typedef {{keyTtl: number, streamSize: number, streamTtl: number, metaTtl: number}} MapRules
 *
 * @typedef {object} MapWrite
 * @property {string} [info] ClientInfo as JSON text
 * @property {Record<string, string> | null} [tags] of a removal without tags: those of the entry
 * @property {string} [idempotencyKey]
 *
 * @typedef {MapWrite & {
 *   json?: boolean, delta?: boolean, version?: bigint, versionEpoch?: string, keyMode?: '' | 'if_new' | 'if_exists',
 *   refresh?: boolean, expected?: {offset: number, epoch: string} | null, append?: boolean, bytes?: boolean,
 *   maxBytes?: number, streamData?: string | Buffer | null, streamJson?: boolean, owned?: boolean
 * }} MapPublish
 * - `refresh`: a publish suppressed by `if_new` renews the lifetimes of key and map
 * - `expected`: position of the entry's last write; offset 0: the key must not exist
 * - `append`: `data` is appended to the value: a JSON string inside its quotes, or bytes to bytes; errors.badRequest for
 *   another value. `bytes`: `data`, a JSON string, may also extend bytes. `maxBytes`: limit of the value,
 *   errors.badRequest; 0: none
 * - `streamData`: sent to subscribers, and stored in the stream, in place of `data`
 * - `owned`: the key is removed if this worker dies
 *
 * @typedef {'' | 'idempotency' | 'version' | 'key_exists' | 'key_not_found' | 'position_mismatch'} Suppressed
 *
 * Position of an accepted write (of a suppressed one: the map's); `current`: with `position_mismatch`, the entry.
 * @typedef {{offset: number, epoch: string, suppressed: Suppressed, current: Publication | null}} MapResult
 *
 * `cursor`: '' = from the start; `key`: only this entry, if not ''; `epoch`: '' = not checked; `upTo`: hides entries
 * written after this offset, 0: none; `limit` > 0 entries, fewer if they exceed `maxBytes` (0: no limit); `text`: the
 * page may have text.
 * @typedef {{cursor: string, limit: number, key: string, epoch: string, upTo: number, maxBytes: number,
 *   text?: boolean}} StateQuery
 *
 * A page may be empty with a cursor. `cursor`: '' = the last page; `offset`: the map's; `text`: the entries as a JSON
 * list of `entryText`, while `entries` is empty; null: in `entries`.
 * @typedef {{entries: Publication[], text: Buffer | null, cursor: string, offset: number, epoch: string}} StatePage
 *
 * @typedef {(error: Error | null, result: MapResult) => void} MapDone
 */

/**
 * Keyed state. A map is a channel: PubSub subscribes to it (`recover`, `position` and `history` refer to the stream of
 * its changes, with the map's `metaTtl`) and delivers its changes as publications with `keyed`. It MUST
 * - execute a write in one atomic step: checks, offset, entry, stream, delivery. Checks in this order, each suppresses
 *   the write: `idempotency`, `version` (per key), `keyMode`, `expected`;
 * - remove expired keys within seconds, as a write with `removed`; readers never get an expired entry;
 * - remove the `owned` keys of a dead worker, and of a dead node at the latest after `keyTtl`;
 * - never drop an unexpired entry: without memory, a publish of a new key fails with errors.internal;
 * - return pages so that an entry that exists during the whole listing is in exactly one page;
 * - reject pages with errors.unrecoverablePosition if the epoch differs;
 * - limit the bytes of pages in transit to a worker, because they delay publications.
 *
 * `clear`: removes entries, stream and idempotency results; the next epoch is new, so that subscribers lose their
 * position; those without one are `interrupted`. `counter`: changes made by this process; 0 where the primary counts.
 * @typedef {Part & {
 *   counter: MapCounter,
 *   publish: (channel: string, key: string, data: string | Buffer, rules: MapRules, options: MapPublish,
 *     done: MapDone) => void,
 *   remove: (channel: string, key: string, rules: MapRules, options: MapWrite, done: MapDone) => void,
 *   state: (channel: string, query: StateQuery, rules: MapRules) => Promise<StatePage>,
 *   stats: (channel: string) => Promise<{keys: number}>,
 *   clear: (channel: string) => Promise<void>
 * }} Maps
 */

/**
 * `interval`: between two calls of the backend for a key, ms; `batchSize`: keys in a call; `concurrency`: calls of the
 * node at a time; `shutdownDelay`: how long versions are kept after the last subscriber, ms; `versioned`: the backend
 * sends versions, else the node numbers the changes.
 * @typedef {{interval: number, batchSize: number, concurrency: number, shutdownDelay: number,
 *   versioned: boolean}} PollRules
 *
 * A key that the backend is asked for, with the version that the node knows (0n: none) and, without versions, the hash
 * of its data ('': none).
 * @typedef {{key: string, version: bigint, hash: string}} PollItem
 *
 * `version`: 0n without versions; `json`: as in Publication.
 * @typedef {{key: string, version: bigint, hash: string, removed: boolean, json: boolean, data: Buffer}} PollChange
 * @typedef {Omit<PollChange, 'hash'>} PollUpdate
 *
 * Changed keys; `epoch`: of the versions, '' = none.
 * @typedef {{changes: PollChange[], epoch: string}} PollResult
 *
 * Shared polls of this node's workers. The primary has the keys that any worker tracks, and lets one of the workers ask
 * the backend for each of them once per interval (BrokerEvents.refresh); it sends changes to the workers that track
 * the key.
 * @typedef {object} Polls
 * @property {(channel: string, rules: PollRules, done: (error: Error | null, epoch: string) => void) => void} open for
 *   the first subscriber of this worker
 * @property {(channel: string) => void} close after its last subscriber
 * @property {(channel: string, items: {key: string, version: bigint}[], done: (error: Error | null) => void) => void}
 *   track `version`: the client's. Asks for a new key with version 0n, and for one whose version is newer, at once.
 *   errors.limitExceeded: the node tracks too much. Updates follow `done`
 * @property {(channel: string, keys: string[]) => void} untrack keys that this worker no longer tracks
 * @property {(channel: string, key: string, version: bigint, epoch: string) => void} published a direct publication has
 *   arrived
 */

/**
 * A connection claims to be the only one of its user. `at`: when it connected, ms of performance.now(); `late`: the
 * order is sent again, so it takes effect at that time.
 * @typedef {{at: number, late: boolean}} Claim
 *
 * Control between the workers of all nodes.
 * @typedef {Part & {
 *   survey: (op: string, params: any) => Promise<any[]>,
 *   order: (op: string, params: any, claim?: Claim) => Promise<any[]>,
 *   call: (node: string, worker: number, request: string | Buffer, done: CallDone | null) => void,
 *   claimUser: (user: string, limit: number, done: ClaimDone) => void,
 *   releaseUser: (user: string) => void,
 *   nodes: () => number
 * }} Control
 * - `survey`: queries every worker of every node, including this one; errors.internal if one does not respond
 * - `order`: as `survey`, for an operation that no worker may miss: an unreachable worker executes it before its
 *   clients can use the broker again. All workers execute orders in the same sequence. With `claim`, workers execute it
 *   with `params.time`: when it takes effect, ms on a clock that all workers share. This is the time of its place in the
 *   sequence, or `at` if it is late. It resolves to that time once the order cannot be lost
 * - `call`: calls one worker of one node, `node` '' = this one. Calls to one worker keep their order. `done` (null: no
 *   response expected) gets errors.notFound if the node or worker does not exist or the worker exits first; no
 *   timeout
 * - `claimUser`: counts a connection of the user over all workers, up to `limit`
 * - `nodes`: connected nodes, including this one; 0: unknown, or the engine connects no nodes
 * - `close`: the other workers stop waiting for this one; pending calls still complete
 */

/**
 * An engine's parts of the broker; the node's own broker, in the primary, provides the others. `ready`: its servers are
 * reachable; `workerGone`: the worker of this node with this number has exited.
 * @typedef {{pubsub?: PubSub, presence?: Presence, maps?: Maps, control?: Control, ready: () => boolean,
 *   workerGone: (worker: number) => void}} Engine
 *
 * @typedef {object} EngineParts
 * @property {any} config
 * @property {Control} local control of this node's own workers
 * @property {BrokerEvents} events
 * @property {string} node id of this node
 * @property {number} worker number of this worker, never reused by the node
 * @property {Republishing} republishing
 * @property {() => void} onReady called whenever `ready` becomes true
 * @property {Denylist} [denylist] filled by the broker
 * @property {Logger} log
 *
 * The broker of one worker. `local`: control of this node's own workers; `statuses`: null = off; `start` resolves when the broker is ready, or
 * after `timeout` ms.
 * @typedef {{pubsub: PubSub, presence: Presence, maps: Maps, control: Control, local: Control, polls: Polls,
 *   denials: Denials, republishing: Republishing, statuses: UserStatuses | null, ready: () => boolean,
 *   start: (timeout: number) => Promise<void>, close: () => void}} Broker
 */

/**
 * Token buckets of users, shared by all nodes.
 * @typedef {object} RateStore
 * @property {(user: string, limit: string, buckets: readonly number[], done: (error: Error | null, allowed: boolean) =>
 *   void) => void} take takes a token of each bucket, or of none. `buckets`: capacity and time to fill it (ms) of each.
 *   `done` is never called before this returns, and possibly late
 * @property {() => void} close
 */

/**
 * Status of a user. `active`, `online`: unix s, 0: unknown; `state`: '' = none.
 * @typedef {{active: number, online: number, state: string}} UserStatus
 *
 * `active`, `online`: set to now; `state`: undefined = unchanged, '' = removed.
 * @typedef {{active?: boolean, online?: boolean, state?: string}} StatusChange
 *
 * Status of users, each removed some time after its last update. Calls reject with errors.internal.
 * @typedef {object} UserStatuses
 * @property {(users: readonly string[], change: StatusChange) => Promise<void>} update
 * @property {(users: readonly string[]) => Promise<UserStatus[]>} get in this order
 * @property {(users: readonly string[]) => Promise<void>} remove
 * @property {() => void} close
 */

/** @type {UserStatus} */
export const NO_STATUS = Object.freeze({ active: 0, online: 0, state: '' })

/** How long the result of an idempotency key is kept, ms; as in Centrifugo. */
export const IDEMPOTENCY_TTL = 5 * 60 * 1000

/** Passed with an error. @type {SubscribeAnswer} */
export const NOT_SUBSCRIBED = Object.freeze({ offset: 0, epoch: '', recovered: false, publications: [] })
