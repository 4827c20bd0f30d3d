// The contract of a broker: publish/subscribe, history, presence and control between all workers of all nodes.
// test/broker/conformance.js says the same in tests and runs over each implementation.

/**
 * @typedef {object} Publication one message of a channel, as it travels
 * @property {Buffer} data payload, for JSON applications a JSON text without line feeds
 * @property {number} offset position in the channel's stream, from 1; 0 = not in history
 * @property {string} epoch the life of the stream that the offset belongs to, '' with offset 0
 * @property {string} info ClientInfo as JSON text, '' unless a client published it
 * @property {Record<string, string> | null} tags
 * @property {bigint} version 0n = none
 * @property {boolean} json whether `data` is a JSON text, or empty (anything else cannot be sent to JSON subscribers)
 * @property {boolean} delta whether it may be sent as a delta against the publication before it
 */

/**
 * @typedef {object} HistoryRules
 * @property {number} historySize publications kept; 0 = no history
 * @property {number} historyTtl ms after the last publication until the kept ones go
 * @property {number} metaTtl ms after the last use until offset and epoch are forgotten
 */

/**
 * @typedef {HistoryRules & {
 *   info?: string, tags?: Record<string, string> | null, idempotencyKey?: string,
 *   version?: bigint, versionEpoch?: string, json?: boolean, delta?: boolean
 * }} PublishOptions `json: false` marks a payload that is neither a JSON text nor empty
 */

/**
 * @typedef {object} SubscribeWants what a subscription needs, answered in one step
 * @property {boolean} first the first subscription of this worker: publications shall flow from now on. If it fails, they do not, unless
 *   another subscription has succeeded before
 * @property {boolean} position the position of the stream is wanted (created if there is none)
 * @property {{offset: number, epoch: string, limit: number} | null} recover publications after this position are wanted; limit 0: any
 *   number of them
 * @property {boolean} latest cache recovery: the newest publications, at most the limit, instead of the ones after a position
 * @property {number} metaTtl ms, for `position`
 * @property {string} client client id for presence; '' = not listed
 * @property {string} info ClientInfo as JSON text, for presence
 * @property {boolean} leave announce a leave if this worker dies
 */

/**
 * @typedef {object} SubscribeAnswer
 * @property {number} offset top of the stream
 * @property {string} epoch
 * @property {boolean} recovered stream mode: `publications` is all that was missed
 * @property {Publication[]} publications ascending
 */

/**
 * @typedef {object} HistoryFilter
 * @property {number} limit 0: position only, -1: all
 * @property {number} [sinceOffset] exclusive; undefined: from the oldest (or, with `reverse`, the newest)
 * @property {string} [sinceEpoch] '' = not checked
 * @property {boolean} [reverse] newest first
 */

/**
 * What the broker hands to the worker.
 *
 * @typedef {object} BrokerEvents
 * @property {(channel: string, publication: Publication) => void} publication `publication` is valid only during the call
 * @property {(channel: string, info: string, joined: boolean) => void} presence a join or a leave
 * @property {(channel: string, offset: number, epoch: string) => void} lost what this worker has missed of the channel cannot be told any more: the next
 *   publication follows this position
 * @property {(op: string, params: any) => any} survey answers a survey; what it throws counts as no answer
 * @property {(request: Buffer, answer: (bytes: string | Buffer) => void) => void} called another worker calls this one. `request` is valid only
 *   during the call; `answer` is to be called once, now or (minutes) later, or never where the caller does not wait
 */

/**
 * A broker MUST
 * - deliver the publications of a channel to all workers in one order, that of their offsets;
 * - call `done` of `subscribe` in that order too: what was published up to the answered offset has been delivered to this
 *   worker before (if it was subscribed), and nothing after it. So a session that joins the fan-out inside `done` misses
 *   nothing and gets nothing twice;
 * - call every `done` exactly once, never before the call returns; with an error when the broker is out of reach;
 * - call `done` of `publish` after the publication was delivered to this worker, if it is subscribed.
 *
 * A broker that may lose its connection to where channels live MUST, when it is back, deliver what each channel of this worker has missed in
 * order before anything newer, or call `lost`. What it was asked for meanwhile fails with errors.internal, at once or after a stated time.
 *
 * It MUST NOT keep anything for each connection beyond presence.
 *
 * @typedef {object} Broker
 * @property {(channel: string, wants: SubscribeWants, done: (error: Error | null, answer: SubscribeAnswer) => void) => void} subscribe
 * @property {(channel: string) => void} unsubscribe the last subscription of this worker has gone
 * @property {(channel: string, data: string | Buffer, options: PublishOptions, done: (error: Error | null, offset: number, epoch: string) => void) => void} publish
 *   offset 0, epoch '': not in history
 * @property {(channel: string, info: string, joined: boolean) => void} announce a join or a leave
 * @property {(channel: string, client: string) => void} removePresence
 * @property {(channel: string) => Promise<Map<string, string>>} presence client id -> ClientInfo as JSON text
 * @property {(channel: string) => Promise<{clients: number, users: number}>} presenceStats
 * @property {(channel: string, filter: HistoryFilter, metaTtl: number) => Promise<{publications: Publication[], offset: number, epoch: string}>} history
 *   rejects with errors.unrecoverablePosition on another epoch
 * @property {(channel: string, metaTtl: number, done: (error: Error | null, offset: number, epoch: string) => void) => void} position in
 *   stream order, as `subscribe`
 * @property {(channel: string) => Promise<void>} removeHistory offset and epoch stay
 * @property {(op: string, params: any) => Promise<any[]>} survey asks every worker of every node, this one included
 * @property {(node: string, worker: number, request: string | Buffer, done: ((error: Error | null, answer: Buffer) => void) | null) => void} call one
 *   worker of one node, `node` '' being this one. Calls to one worker arrive in the order in which they were made. `done` (null: no answer is
 *   wanted) gets errors.notFound when there is no such node or worker, or when it ends before it has answered; no time limit. The
 *   answer is valid only during `done`
 * @property {(user: string, limit: number, done: (error: Error | null, admitted: boolean) => void) => void} claimUser counts a connection of the
 *   user over all workers, unless there are `limit` already
 * @property {(user: string) => void} releaseUser
 * @property {() => boolean} ready whether the broker is within reach
 */

export {}
