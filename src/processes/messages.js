// The messages between the primary and its child processes, one row each. A receiver has a table of handlers by
// message type; tsc checks types and fields on both sides.

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
 * @property {boolean} watch whether the primary reads reports of blocking handlers
 *
 * @typedef {ChildStart & WorkerOnly} WorkerStart
 * @typedef {ChildStart & {first: boolean}} QueuesStart `first`: gateway startup; an unreachable server is fatal
 *
 * @typedef {object} Drain
 * @property {number} over time for the clients, ms
 * @property {number} within total time, ms
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
 * @typedef {object} ToChild to workers and the queue process
 * @property {{id: number, config: Config, cursorKey: string}} prepare a new configuration; answered by `switched`
 * @property {{id: number}} commit use it; answered by `switched`
 * @property {{}} gc collect garbage
 * @property {{shown: boolean, forward: boolean}} log write log lines to standard output, send them to the primary
 *
 * @typedef {object} ToWorkerOnly
 * @property {WorkerStart} start
 * @property {{ready: boolean, first: number}} workers whether all listen, and the number of the first slot's worker
 * @property {{count: number}} otherConnections connections of the other workers
 * @property {{on: boolean}} rest pause accepting in favor of the other workers
 * @property {Drain} drain disconnect the clients and exit
 * @property {StatsAnswer} stats
 * @property {{on: boolean}} reports whether to report connects and disconnects
 *
 * @typedef {object} ToQueuesOnly
 * @property {QueuesStart} start
 * @property {{}} drain stop pulling, finish messages in progress; answered by `drained`
 * @property {{within: number}} end empty the republisher queues within this time, ms, and exit
 *
 * @typedef {ToChild & ToWorkerOnly} ToWorker
 * @typedef {ToChild & ToQueuesOnly} ToQueues
 */

/**
 * @typedef {object} FromChild from workers and the queue process
 * @property {{}} ready for `start`
 * @property {{message: string}} failed reason of the exit that follows
 * @property {{id: number, error: string | null}} switched answers `prepare` and `commit`; `error`: reason of a rejection
 * @property {{line: string}} log a log line
 *
 * @typedef {object} FromWorkerOnly
 * @property {{rss: number | null}} ready-to-listen memory before the first client, bytes
 * @property {{server: {driver: string, fallback: string}}} listening `fallback`: reason of a fallback from uws
 * @property {KnownKeys} jwks keys of an endpoint were fetched
 * @property {{count: number}} open its connections, for `otherConnections`
 * @property {{sample: WorkerSample, debugged: boolean}} sample once a second; `debugged`: its inspector is open
 * @property {{up: boolean}} redis whether Redis responds
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

/** @template Table @typedef {{[T in keyof Table]: {type: T} & Table[T]}[keyof Table]} Message one of a table */

/**
 * @template Table
 * @template {unknown[]} [From=[]]
 * @typedef {{[T in keyof Table]: (message: Table[T], ...from: From) => unknown}} Handlers of the messages of a table;
 *   `From`: further arguments
 */

/**
 * Calls the handler of a message, if there is one.
 * @template {unknown[]} From
 * @param {Partial<Record<string, (message: any, ...from: From) => unknown>>} handlers
 * @param {{type: string}} message
 * @param {From} from
 */
export function receive(handlers, message, ...from) {
  handlers[message.type]?.(message, ...from)
}
