// The contract of consumers: each takes messages out of one queue, stream or table, and runs them as server API calls.
// Imports: errors, config, protocol, broker, api; a client library only where it is used (see TYPES in index.js).
// Promise: at least once. A message is acknowledged after it had its effect, or was skipped for good; in the order that
// its type promises. Losing the server after the start is never fatal. test/backends/queues/consumers/conformance.js states the rest.

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
 *
 * A type file exports `create(context: ConsumerContext): Consumer`. What it buffers MUST be bounded, in bytes too.
 */

export {}
