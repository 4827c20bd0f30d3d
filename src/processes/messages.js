// The messages between the primary and the processes that it forks: one row per message, with its fields. A receiver
// has a table with a handler per message; tsc checks types and fields on both sides.

/** @import { Config } from '../config/options.js' */
/** @import { NodeIdentity } from '../backends/api/context.js' */
/** @import { KnownKeys } from '../clients/auth/jwks.js' */
/** @import { Republished } from '../metrics/queue-totals.js' */
/** @import { ConsumerFigures, Counts, ProcessSample, WorkerSample } from '../metrics/schema.js' */
/** @import { StatsAnswer, StatsRequest } from '../metrics/stats-view.js' */

/**
 * @typedef {object} ChildStart the first message
 * @property {Config} config
 * @property {number} number of the process, see numberOf()
 * @property {NodeIdentity} node
 * @property {boolean} terminal whether log lines are formatted for a terminal
 * @property {boolean} quiet log lines go to the primary, not to standard output
 *
 * @typedef {object} WorkerOnly
 * @property {number} index of its slot, 0 ...
 * @property {number} workers
 * @property {string} cursorKey base64
 * @property {KnownKeys[]} keySets
 * @property {boolean} lifecycle whether the primary reads events for the lifecycle log
 * @property {boolean} watch whether it reads which handler of the hooks module blocks the worker
 *
 * @typedef {ChildStart & WorkerOnly} WorkerStart
 * @typedef {ChildStart & {first: boolean}} QueuesStart `first`: the gateway starts, so a server out of reach ends it
 *
 * @typedef {object} Drain
 * @property {number} over time for the clients, ms
 * @property {number} within time for everything, ms
 * @property {boolean} stopping all workers end
 *
 * @typedef {object} ClientReport
 * @property {'connected' | 'disconnected'} event
 * @property {{client: string, user: string, transport: string, code?: number, reason?: string}} about
 *
 * @typedef {object} QueuesSample
 * @property {number} time Unix ms
 * @property {ProcessSample} process
 * @property {Counts} counts
 * @property {ConsumerFigures[]} consumers
 * @property {Republished[]} republish
 */

/**
 * @typedef {object} ToChild to a worker and to the queue process
 * @property {{id: number, config: Config, cursorKey: string}} prepare a new configuration; answered by `switched`
 * @property {{id: number}} commit use what was prepared; answered by `switched`
 * @property {{}} gc collect garbage
 * @property {{shown: boolean, forward: boolean}} log write log lines to standard output, send them to the primary
 *
 * @typedef {object} ToWorkerOnly
 * @property {WorkerStart} start
 * @property {{ready: boolean, first: number}} workers whether all listen, and the number of the first slot's worker
 * @property {{count: number}} otherConnections connections of the other workers
 * @property {{on: boolean}} rest whether to leave new connections to the other workers
 * @property {Drain} drain disconnect the clients and exit
 * @property {StatsAnswer} stats
 * @property {{on: boolean}} reports whether to report connects and disconnects
 *
 * @typedef {object} ToQueuesOnly
 * @property {QueuesStart} start
 * @property {{}} drain pull no more, finish the messages being handled; answered by `drained`
 * @property {{within: number}} end empty the queues of republishers within this time, ms, and exit
 *
 * @typedef {ToChild & ToWorkerOnly} ToWorker
 * @typedef {ToChild & ToQueuesOnly} ToQueues
 */

/**
 * @typedef {object} FromChild of a worker and of the queue process
 * @property {{}} ready for `start`
 * @property {{message: string}} failed reason of the exit that follows
 * @property {{id: number, error: string | null}} switched answers `prepare` and `commit`; `error`: reason of a refusal
 * @property {{line: string}} log a log line
 *
 * @typedef {object} FromWorkerOnly
 * @property {{rss: number | null}} ready-to-listen memory before the first client, bytes
 * @property {{server: {driver: string, fallback: string}}} listening `fallback`: why it is not uws although that was
 *   wanted
 * @property {KnownKeys} jwks keys of an endpoint were fetched
 * @property {{count: number}} open its connections, for `otherConnections`
 * @property {{sample: WorkerSample, debugged: boolean}} sample of a second; `debugged`: its inspector is open
 * @property {{up: boolean}} redis whether Redis answers
 * @property {StatsRequest} stats
 * @property {{reports: ClientReport[], dropped: number}} clients connects and disconnects
 *
 * @typedef {object} FromQueuesOnly
 * @property {{rss: number | null}} started
 * @property {{sample: QueuesSample, debugged: boolean}} sample of a second
 * @property {{}} drained
 *
 * @typedef {FromChild & FromWorkerOnly} FromWorker
 * @typedef {FromChild & FromQueuesOnly} FromQueues
 */

/**
 * @template Table
 * @typedef {{[T in keyof Table]: {type: T} & Table[T]}[keyof Table]} Message one of a table
 */

/**
 * @template Table
 * @template {unknown[]} [From=[]]
 * @typedef {{[T in keyof Table]: (message: Table[T], ...from: From) => unknown}} Handlers one per message of a table;
 *   `From`: further arguments
 */

/**
 * Calls the handler of a message. A message without a handler has no effect.
 * @template {unknown[]} From
 * @param {Partial<Record<string, (message: any, ...from: From) => unknown>>} handlers
 * @param {{type: string}} message
 * @param {From} from
 */
export function receive(handlers, message, ...from) {
  handlers[message.type]?.(message, ...from)
}
