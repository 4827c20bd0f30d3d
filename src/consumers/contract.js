// The contract of a consumer type: a source of messages, each of which is a call of the server API. A type file of this
// room exports `create(context)`. After the start, losing the server is never fatal: it reconnects for ever, with back-off.

/** @import { Log } from '../log.js' */

/**
 * @typedef {object} Message
 * @property {Buffer | string | null} payload
 * @property {string} method '' = the payload is an envelope
 * @property {Record<string, string>} headers for publication data mode, null-prototype; names are case-sensitive
 */

/**
 * done: it had its effect; skipped: bad, never try again (counted by reason); retry: error 100, try again
 * @typedef {'done' | 'skipped' | 'retry'} Outcome
 */

/**
 * @typedef {object} ConsumerContext
 * @property {string} name of the consumer
 * @property {any} options its type block
 * @property {string} node uid of the node
 * @property {Log} log limited in rate, with the consumer's name
 * @property {() => number} clock unix ms
 * @property {(message: Message, since?: number) => Promise<Outcome>} handle runs one message; never rejects; counts
 *   processed, skipped, errors and the age of the message (since: unix ms when it was written, if the source knows)
 * @property {(error: Error) => void} failed the source failed (connection, query): counts an error, one log line
 * @property {(messages: number) => void} lag messages that wait at the source, where it knows
 * @property {(tries: number, signal: AbortSignal) => Promise<void>} backoff waits before the n-th retry (n from 1);
 *   ends at once on abort
 */

/**
 * @typedef {object} Consumer
 * @property {() => Promise<void>} start reaches the server and begins to pull. Rejects if the server is out of reach:
 *   the gateway does not start
 * @property {() => Promise<void>} stop pulls no more at once; resolves when messages in work are finished and
 *   acknowledged and the connection is closed. A message in back-off is given back unacknowledged
 */

export {}
