// The contracts of queue systems. Each system has a folder; its `consumer.js` exports `create(context): Consumer`, its
// `republisher.js` `create(context): Destination`, and it has a row in types.js. Imports: config, log, broker, api; a client
// library only in the folder of its system.
//
// A consumer takes messages out of queues, streams or tables and runs them as server API calls, at least once: a message
// is acknowledged after it had its effect, or was skipped for good, in the order that its type promises. Losing the server
// after the start is never fatal. What it buffers MUST be bounded, in bytes too.
//
// A destination takes republished publications (docs/republish.md):
//   bus -> Republishers -> Republisher (queue, overflow, resending) -> Destination -> server
//
// The conformance suites in test/backends/queues state the rest.

/** @import { Log } from '../../base/log.js' */

/**
 * @typedef {object} Message
 * @property {Buffer | string | null} payload
 * @property {string} method '' = the payload is an envelope
 * @property {Record<string, string>} headers for publication data mode, null-prototype; names are case-sensitive
 *
 * @typedef {'done' | 'skipped' | 'retry'} Outcome `done`: it had its effect; `skipped`: it is bad, never try it again;
 *   `retry`: error 100, try it again
 *
 * @typedef {object} ConsumerContext
 * @property {string} name of the consumer
 * @property {any} options its type block
 * @property {string} node uid of the node
 * @property {Log} log limited in rate, with the consumer's name
 * @property {() => number} clock unix ms
 * @property {(message: Message, since?: number) => Promise<Outcome>} handle runs one message; never rejects; counts
 *   processed, skipped, errors and the age of the message (`since`: unix ms when it was written, if the source knows)
 * @property {(error: Error) => void} failed the source failed (connection, query): counts an error, one log line
 * @property {(messages: number) => void} lag messages that wait at the source, where it knows
 * @property {(tries: number, signal: AbortSignal) => Promise<void>} backoff waits before the n-th retry (n from 1);
 *   ends at once on abort
 *
 * @typedef {object} Consumer
 * @property {() => Promise<void>} start reaches the server and begins to pull. MUST reject, in one line without
 *   passwords, if the server is out of reach. May be called again after it has rejected
 * @property {() => Promise<void>} stop pulls no more at once; resolves when messages in work are finished and
 *   acknowledged and the connection is closed. A message in back-off is given back unacknowledged. MUST not reject
 */

/**
 * @typedef {object} OutgoingMessage
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
 * @typedef {'confirmed' | 'returned' | 'refused'} Delivery `refused`: the server does not take it, and never would
 *
 * @typedef {object} DestinationContext
 * @property {any} options of the type's block
 * @property {string} name of the republisher
 * @property {Log} log limited in rate
 * @property {() => void} up it is connected: `send` may be called
 * @property {(error: Error) => void} down the connection is lost. Messages without an outcome are sent again after `up`
 * @property {(message: OutgoingMessage, outcome: Delivery, reason?: string) => void} settled once for each message, unless `down`
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
 * @property {(message: OutgoingMessage) => void} send throws if the message cannot be sent: it is refused
 * @property {() => void} [flush] after the last `send` of a turn
 * @property {() => Promise<void>} stop
 */

export {}
