// Republishing: accepted publications go into queues of other systems (docs/republish.md). In the queue process.
// A destination is one file with one server type and a row in TYPES of index.js.
// Imports: config, log, broker. test/backends/queues/republishers/conformance.js states the contract as tests for every type.
//
//   bus -> Republishers -> Republisher (queue, overflow, resending) -> Destination -> server

/**
 * @typedef {object} Message
 * @property {string} id stays the same when the message is sent again
 * @property {string} channel
 * @property {Buffer} body
 * @property {boolean} json whether the body is JSON
 * @property {Record<string, string>} headers
 * @property {string} target filled template: exchange, stream, subject or topic
 * @property {string} key filled template of the routing key, ''
 * @property {number} time unix ms
 * @property {number} bytes that it takes of `queue_max_bytes`
 * @property {number} number of its confirm on the bus, 0: nobody waits
 *
 * @typedef {'confirmed' | 'returned' | 'refused'} Outcome `refused`: the server does not take it, and never would
 *
 * @typedef {object} DestinationContext
 * @property {any} options of the type's block
 * @property {string} name of the republisher
 * @property {import('../../base/log.js').Log} log limited in rate
 * @property {() => void} up it is connected: `send` may be called
 * @property {(error: Error) => void} down the connection is lost. Messages without an outcome are sent again after `up`
 * @property {(message: Message, outcome: Outcome, reason?: string) => void} settled once for each message, unless `down`
 *   was called after its `send`; `reason` of a refusal, for the log
 */

/**
 * MUST
 * - reconnect by itself for ever, with a delay, from `start` to `stop`, and call `up` and `down` in turn;
 * - keep the order of the messages of one channel;
 * - never settle a message that it was given before `down`.
 * It MUST NOT keep messages beyond those without an outcome, of which there are at most `max_in_flight`.
 * @typedef {object} Destination
 * @property {() => void} start
 * @property {(message: Message) => void} send throws if the message cannot be sent: it is refused
 * @property {() => void} [flush] after the last `send` of a turn
 * @property {() => Promise<void>} stop
 */

/** Delays between attempts to connect, ms. */
const FIRST_DELAY_MS = 100
const MAX_DELAY_MS = 5000

/** @param {number} failures from 1 @returns {number} ms until the next attempt */
export const reconnectDelay = failures =>
  Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** Math.min(failures - 1, 10)) * (0.75 + Math.random() / 2)
