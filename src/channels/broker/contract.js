// The contract of a broker in three parts: publish/subscribe with history, presence, control between workers and
// nodes. An engine implements some of them (see Engine); src/channels/broker/index.js assembles the broker of a worker.
// Imports: errors, config; no sessions, transports or server API.
// Promise: every worker sees the publications of a channel in the same order; presence is the only state for each
// connection. test/channels/broker/conformance.js states the contract as tests for every engine.

/**
 * @typedef {object} Publication
 * @property {Buffer} data payload; for JSON applications JSON text without line feeds
 * @property {number} offset position in the channel's stream, from 1; 0 = not in history
 * @property {string} epoch '' with offset 0
 * @property {number} [previous] offset of the publication before it, if it may be another one than `offset - 1`
 * @property {string} info ClientInfo as JSON text, '' unless a client published it
 * @property {Record<string, string> | null} tags
 * @property {bigint} version 0n = none
 * @property {boolean} json `data` is JSON text or empty; otherwise JSON subscribers cannot receive it
 * @property {boolean} delta may be sent as a delta against the previous publication
 */

/**
 * @typedef {object} HistoryRules
 * @property {number} historySize publications kept; 0 = no history
 * @property {number} historyTtl ms from the last publication until the history expires
 * @property {number} metaTtl ms from the last use until offset and epoch expire
 */

/**
 * @typedef {HistoryRules & {
 *   info?: string, tags?: Record<string, string> | null, idempotencyKey?: string,
 *   version?: bigint, versionEpoch?: string, json?: boolean, delta?: boolean, republish?: Route | null, meta?: string
 * }} PublishOptions `json: false` marks a payload that is neither a JSON text nor empty; `meta`: JSON text of the
 *   client's connection, for a route `withMeta`
 */

/**
 * To which republishers a publication goes after the broker has accepted it (docs/republish.md).
 * @typedef {object} Route
 * @property {number} to one bit for each republisher
 * @property {number} block those of them whose full queue refuses the publication, with errors.internal
 * @property {number} wait ms that `done` waits for the confirms of required ones; then it gets errors.internal although
 *   the publication was accepted. 0: it does not wait
 * @property {number} source who publishes, see SOURCES of config/republish.js
 * @property {boolean} withMeta whether any of them wants the meta of the client's connection
 */

/**
 * @typedef {object} Recover
 * @property {number} offset
 * @property {string} epoch '' = not checked
 * @property {number} limit publications; more have been missed: not recovered. 0: no limit
 * @property {number} [maxBytes] of the publications, approximately; two or more are larger: not recovered (with
 *   `latest`: the newest that fit). 0: no limit
 */

/**
 * @typedef {object} SubscribeWants the parts of a subscription, answered in one step
 * @property {boolean} first first subscription of this worker to the channel: publications flow from now on. If it
 *   fails, they do not, unless another subscription has succeeded before
 * @property {boolean} position return the position of the stream; creates a missing stream
 * @property {Recover | null} recover return the publications after this position
 * @property {boolean} latest cache recovery: return the newest publications instead, at most `limit`
 * @property {number} metaTtl ms, for `position`
 * @property {string} client client id for presence; '' = not listed
 * @property {string} info ClientInfo as JSON text, for presence
 * @property {boolean} leave announce a leave if this worker dies
 */

/**
 * @typedef {object} SubscribeAnswer
 * @property {number} offset top of the stream
 * @property {string} epoch
 * @property {boolean} recovered stream mode: `publications` are all missed ones
 * @property {Publication[]} publications ascending
 */

/**
 * @typedef {object} HistoryFilter
 * @property {number} limit 0: position only, -1: all
 * @property {number} [sinceOffset] exclusive; undefined: from the oldest (or, with `reverse`, the newest)
 * @property {string} [sinceEpoch] '' = not checked
 * @property {boolean} [reverse] newest first
 * @property {number} [maxBytes] of the publications, approximately: the list ends before the one beyond it, but not
 *   before the first one. 0: no limit
 *
 * @typedef {object} HistoryAnswer
 * @property {Publication[]} publications
 * @property {number} offset top of the stream
 * @property {string} epoch
 * @property {boolean} complete false: `maxBytes` has ended the list
 */

/**
 * An accepted publication on its way to republishers.
 * @typedef {object} Republication
 * @property {number} number by which its confirm is reported; 0: nobody waits for it
 * @property {number} to one bit for each republisher
 * @property {number} source as in Route
 * @property {number} time when it was published, unix ms
 * @property {string} channel
 * @property {string} meta JSON text, ''
 * @property {Publication} publication valid only during the call
 */

/**
 * Republishing over the bus: its bounds are those of the process that has the republishers.
 * @typedef {object} Republishing
 * @property {number} full one bit for each republisher whose queue is full
 * @property {(channel: string, data: string | Buffer, options: PublishOptions, offset: number, epoch: string,
 *   done: ((error: Error | null) => void) | null) => void} hand gives an accepted publication to its republishers.
 *   Those of one caller arrive in order. `done` is called when the required ones have confirmed it
 * @property {(number: number, confirmed: boolean) => void} confirm the answer to a Republication with a number
 * @property {(full: number) => void} report tells all workers which queues are full
 */

/**
 * Callbacks of a broker into its worker.
 * @typedef {object} BrokerEvents
 * @property {(channel: string, publication: Publication) => void} publication valid only during the call
 * @property {(channel: string, info: string, joined: boolean) => void} presence a join or a leave
 * @property {(channel: string, offset: number, epoch: string) => void} lost missed publications cannot be recovered:
 *   the next publication of the channel follows this position
 * @property {(op: string, params: any, before: number) => any} survey answers a survey or executes an order; if it
 *   throws, the survey fails. `before`: an order concerns only connections made before, ms of performance.now()
 * @property {(then: () => void) => void} [executed] calls `then` when all of the orders given to `survey` is done
 * @property {() => void} [ordersLost] orders were missed for good: no connection may stay
 * @property {(publication: Republication) => void} [republish] a publication for republishers, in the process that has
 *   them
 * @property {(request: Buffer, answer: (bytes: string | Buffer) => void) => void} called call from another worker.
 *   `request` is valid only during the call; `answer` is called once, now or minutes later, or never if the caller
 *   wants no answer
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
 * - call `done` of `subscribe` and `position` in that order too: publications up to the answered offset were delivered
 *   to this worker before (if it was subscribed), later ones were not. So a session that joins the fan-out inside
 *   `done` misses nothing and receives nothing twice;
 * - call every `done` exactly once, never before the method returns; with an error while the broker is out of reach;
 * - call `done` of `publish` after the delivery to this worker, if it is subscribed;
 * - have few bytes of recovery and history under way to a worker at any time, however many it asks for: publications
 *   and other requests do not wait behind them.
 *
 * A broker that may lose its connection MUST, after a reconnect, deliver the missed publications of each channel of
 * this worker in order before any newer one, or call `lost`. Requests during the outage fail with errors.internal, at
 * once or after a stated time.
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
 * - `publish`: hands an accepted publication with a `republish` to Republishing, a repeated one (idempotency key,
 *   version) not; in the order of the channel as far as it knows it. Answers offset 0 and epoch '' for a publication
 *   that is not in history
 * - `announce`: publishes a join or a leave
 * - `history`: rejects with errors.unrecoverablePosition on another epoch, or if publications that it has not read yet
 *   are trimmed; there is no gap in a list
 * - `removeHistory`: offset and epoch stay
 */

/**
 * Clients present in a channel, over all workers. `subscribe` adds them; the clients of a worker that dies are
 * removed. It MUST NOT keep anything else for each connection.
 * @typedef {Part & {
 *   update: (channel: string, client: string, info: string) => void,
 *   remove: (channel: string, client: string) => void,
 *   list: (channel: string) => Promise<Map<string, string>>,
 *   stats: (channel: string) => Promise<{clients: number, users: number}>
 * }} Presence
 * - `update`: replaces the ClientInfo of a client of this worker; no effect if it is not present. While the broker is
 *   out of reach, the new info waits
 * - `list`: client id -> ClientInfo as JSON text
 * - `stats`: all anonymous clients count as one user
 */

/**
 * Control between the workers of all nodes.
 * @typedef {Part & {
 *   survey: (op: string, params: any) => Promise<any[]>,
 *   order: (op: string, params: any, claim?: {at: number}) => Promise<any[]>,
 *   call: (node: string, worker: number, request: string | Buffer, done: CallDone | null) => void,
 *   claimUser: (user: string, limit: number, done: ClaimDone) => void,
 *   releaseUser: (user: string) => void,
 *   nodes: () => number
 * }} Control
 * - `survey`: asks every worker of every node, this one included; rejects with errors.internal if one does not answer
 * - `order`: as `survey`, for an operation that no worker may miss: one that is out of reach executes it before its
 *   clients can use the broker again. Orders are executed in one order everywhere. `claim`: resolves when the order
 *   cannot be lost any more; `at`: it concerns connections made before, ms of performance.now(); 0: all that there are
 * - `call`: one worker of one node, `node` '' = this one. Calls to one worker arrive in the order in which they were
 *   made. `done` (null: no answer wanted) gets errors.notFound if there is no such node or worker, or if the worker
 *   ends before its answer; no time limit
 * - `claimUser`: counts a connection of the user over all workers, unless there are `limit` already
 * - `nodes`: connected nodes, this one included; 0: not known yet, or the engine connects no nodes
 * - `close`: the other workers stop waiting for this one; calls under way are still answered
 */

/**
 * An engine's parts of the broker. The node's own broker, in the primary, provides the missing ones.
 * @typedef {object} Engine
 * @property {PubSub} [pubsub]
 * @property {Presence} [presence]
 * @property {Control} [control]
 * @property {() => boolean} ready whether its servers are within reach
 * @property {(worker: number) => void} workerGone the worker of this node with this number has ended
 *
 * @typedef {object} EngineParts
 * @property {any} config the whole configuration, checked
 * @property {Control} local control of this node's own workers
 * @property {BrokerEvents} events
 * @property {string} node id of this node
 * @property {number} worker number of this worker, unique among all that the node ever has
 * @property {Republishing} republishing
 * @property {() => void} onReady called whenever `ready` becomes true
 * @property {import('pino').Logger} log
 */
/**
 * The broker of one worker.
 * @typedef {object} Broker
 * @property {PubSub} pubsub
 * @property {Presence} presence
 * @property {Control} control
 * @property {Control} local control of this node's own workers only
 * @property {Republishing} republishing
 * @property {() => boolean} ready whether every part is within reach
 * @property {(timeout: number) => Promise<void>} start resolves when the broker is ready, or after `timeout` ms
 * @property {() => void} close
 */

/** Validity of the result of a publication with an idempotency key, ms; as in Centrifugo. */
export const IDEMPOTENCY_TTL = 5 * 60 * 1000

/** The answer that comes with an error. @type {SubscribeAnswer} */
export const NOT_SUBSCRIBED = Object.freeze({ offset: 0, epoch: '', recovered: false, publications: [] })
