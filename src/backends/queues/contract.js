// The contracts of queue systems. Each system has a folder with `consumer.js`, `create(context): Consumer`, and
// `republisher.js`, `create(context): Destination`, and a row in types.js. Only this folder imports the client library.
//
// A consumer runs messages of queues, streams or tables as server API calls, at least once: it acknowledges a message
// after it took effect or was skipped, in the order guaranteed by its type. Losing the server after the start is never
// fatal. Buffers MUST be bounded in number and bytes.
//
// A destination takes republished publications (docs/republish.md):
//   bus -> Republishers -> Republisher (queue, overflow, resending) -> Destination -> server

/** @import { Log } from '../../base/log.js' */
/** @import { ConsumerOptions, RepublishOptions } from '../../config/options.js' */

/**
 * `method`: '' = the payload is an envelope; `headers`: for publication data mode, null-prototype, case-sensitive.
 * @typedef {{payload: Buffer | string | null, method: string, headers: Record<string, string>}} Message
 *
 * @typedef {'done' | 'skipped' | 'retry'} Outcome `skipped`: can never succeed; `retry`: error 100
 */

/**
 * @template {'aws_sqs' | 'kafka' | 'nats_jetstream' | 'postgresql' | 'rabbitmq' | 'redis_stream'} T type
 * @typedef {object} ConsumerContext
 * @property {string} name of the consumer
 * @property {ConsumerOptions[T]} options of the type
 * @property {string} node uid of the node
 * @property {Log} log rate-limited, with the consumer's name
 * @property {() => number} clock unix ms
 * @property {(message: Message, since?: number) => Promise<Outcome>} handle runs one message; never rejects; counts
 *   processed, skipped, errors and the age of the message (`since`: unix ms of its creation, if known)
 * @property {(error: Error) => void} failed reports a failure of the source (connection, query): counts and logs it
 * @property {(messages: number) => void} lag messages pending at the source, if known
 * @property {(tries: number, signal: AbortSignal) => Promise<void>} backoff before the n-th retry; ends on abort
 */

/**
 * @typedef {object} Consumer
 * @property {() => Promise<void>} start connects and begins to pull. MUST reject, in one line without passwords, if the
 *   server is unreachable; may then be called again
 * @property {() => Promise<void>} stop stops pulling; resolves when messages in progress are acknowledged and the
 *   connection is closed. A message in backoff is returned unacknowledged. MUST NOT reject
 */

/**
 * `id` is kept when a message is resent; `target`, `key`: filled templates; `time`: unix ms; `bytes`: its share of
 * `queue_max_bytes`; `number`: of its confirm on the bus, 0: none.
 * @typedef {{id: string, channel: string, body: Buffer, json: boolean, headers: Record<string, string>, target: string,
 *   key: string, time: number, bytes: number, number: number}} OutgoingMessage
 *
 * @typedef {'confirmed' | 'returned' | 'refused'} Delivery `refused`: permanently rejected by the server
 */

/**
 * @template {'kafka' | 'nats_jetstream' | 'rabbitmq' | 'redis_stream'} T type
 * @typedef {object} DestinationContext
 * @property {RepublishOptions[T]} options of the type
 * @property {string} name of the republisher
 * @property {Log} log rate-limited
 * @property {() => void} up connected: `send` may be called
 * @property {(error: Error) => void} down connection lost. Messages without an outcome are resent after `up`
 * @property {(message: OutgoingMessage, outcome: Delivery, reason?: string) => void} settled once per message, unless
 *   `down` was called after its `send`; `reason` of a rejection, for the log
 */

/**
 * MUST
 * - reconnect indefinitely, with a delay, from `start` to `stop`, and call `up` and `down` in turn;
 * - keep the message order of each channel;
 * - never settle a message sent before `down`.
 * It MUST NOT buffer more than the messages without an outcome, at most `max_in_flight`.
 * @typedef {object} Destination
 * @property {() => void} start
 * @property {(message: OutgoingMessage) => void} send throws if the message cannot be sent (refused)
 * @property {() => void} [flush] after the last `send` of a turn
 * @property {() => Promise<void>} stop
 */

export {}
