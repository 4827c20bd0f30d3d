// The schema of snapshots, one a second, for the dashboard, the CSV file, Prometheus and the admin page; docs/stats.md
// describes it for users. New fields keep the version; a changed meaning raises it.
// Units: times in ms, sizes in bytes, shares from 0 to 1 (of one core for a process, of all cores for the machine).
// Counts over the interval are those since the previous sample; everything else is the current state.

export const SCHEMA_VERSION = 1

/** What a snapshot has of parts that are not there. */
export const NO_OUTPUTS = Object.freeze({ csv: null, lifecycle: null, consumers: null, republishers: null })

/**
 * Waits for the event loop in ms, measured on a 10 ms grid (primary: 50 ms). `buckets` is the histogram, for merging:
 * index, count, index, count ... (see tick-histogram.js); percentiles are never averaged.
 * @typedef {{count: number, min: number, avg: number, p50: number, p90: number, p99: number, max: number,
 *   buckets: number[]}} Ticks
 */

/** @typedef {{count: number, pause: number}} GcKind over the interval; pause: ms */
/** @typedef {{minor: GcKind, major: GcKind, incremental: GcKind, weak: GcKind}} GcKinds */

/**
 * The primary or a worker.
 * @typedef {object} ProcessSample
 * @property {number} pid
 * @property {number} uptime ms
 * @property {{user: number, system: number}} cpu shares of one core, over the interval
 * @property {{utilization: number, ticks: Ticks}} loop utilization: share of the interval in which the loop was busy
 * @property {ProcessMemory} memory
 * @property {GcKinds} gc
 * @property {{open: number | null, limit: number | null}} files open descriptors and the soft limit; null if unknown
 * @property {{dropped: number, error: string | null}} log lines dropped since the start of the process, and why lines
 *   cannot be written now; null: they can
 */

/**
 * @typedef {object} ProcessMemory
 * @property {number} rss
 * @property {number} heap_used
 * @property {number} heap_total committed
 * @property {number} heap_limit
 * @property {number} external includes array_buffers
 * @property {number} array_buffers
 * @property {Record<string, {used: number, total: number}>} spaces heap spaces, by V8's names without `_space`: new,
 *   old, code, large_object ...
 */

/** @typedef {{messages: number, bytes: number}} Flow over the interval; bytes: payloads without framing */

/** @typedef {{connects: number, in: Flow, out: Flow}} TransportCounts */

/**
 * Events of a worker over the interval, by name and code. Names that did not occur are absent.
 * @typedef {object} Counts
 * @property {number} accepts opened connections
 * @property {number} connects clients that completed the protocol's connect
 * @property {Flow} in from clients; messages are commands and pongs
 * @property {Flow} out to clients; messages are replies, pushes (each one of a shared frame) and pings
 * @property {Record<string, TransportCounts>} transports by transport: websocket, http_stream, sse, poll,
 *   uni_websocket, uni_sse, uni_http_stream, uni_poll
 * @property {number} publishes publications accepted from clients and the server API
 * @property {number} deliveries publications delivered, one per subscriber
 * @property {Record<string, number>} commands of clients, by method
 * @property {Record<string, number>} errors error replies, by code
 * @property {Record<string, number>} closes ended connections, by the close code of either side (1000, 1001, 1005,
 *   1006 ...); `0` for an HTTP client that left
 * @property {Record<string, number>} unsubscribes by the gateway, by code
 * @property {{recovered: number, failed: number}} recoveries subscriptions that requested recovery, by result
 * @property {Record<string, number>} api calls of the server API, by method
 * @property {Record<string, number>} api_errors by code
 * @property {Record<string, number>} refusals clients turned away, by reason (docs/errors.md)
 * @property {Record<string, HookCounts>} hooks by protocol, event and name, separated by spaces
 * @property {BatchCounts} batches
 */

/**
 * Flushes of batched channels over the interval (docs/batching.md).
 * @typedef {object} BatchCounts
 * @property {number} items publications, joins and leaves of all flushes
 * @property {number[]} within flushes with at most each of BATCH_BOUNDS items (batch-stats.js)
 * @property {Record<string, number>} flushes by reason
 * @property {Record<string, number>} conflated publications that a newer one has replaced, by namespace
 */

/**
 * Calls of one hook or proxy over the interval.
 * @typedef {object} HookCounts
 * @property {number} calls that have ended
 * @property {number} time of all of them, ms
 * @property {number[]} within calls that took at most each of DURATION_BOUNDS (hook-stats.js)
 * @property {Record<string, number>} failures by kind (docs/proxies.md)
 */

/** @typedef {{inflight: number, down: number}} HookState calls under way; workers for which the backend is down */

/**
 * @typedef {object} Connections
 * @property {number} open transports, connected or not
 * @property {number} connected clients
 * @property {Record<string, Record<string, number>>} by connected clients, by transport and codec (json, protobuf)
 */

/**
 * A worker's message to the primary, once a second.
 * @typedef {ProcessSample & {index: number, time: number, interval: number, connections: Connections,
 *   subscriptions: number, channels: number, windows: number, outbox: {bytes: number, largest: number},
 *   accepting: boolean, overload: 'event_loop' | 'memory' | null, hooks: Record<string, HookState>,
 *   counts: Counts}} WorkerSample
 *   `time`: unix ms; `interval`: ms since its previous sample; `channels`: with subscribers in this worker;
 *   `windows`: of batched channels, with items; `outbox`: unsent bytes, of all clients and of the one with the most;
 *   `accepting`: false while too few descriptors are free; `overload`: why it refuses new connections; `hooks`: as in
 *   `counts`, every one of the configuration
 */

/**
 * A worker slot in a snapshot; it is present in every state.
 * @typedef {object} WorkerView
 * @property {number} index
 * @property {'starting' | 'up' | 'silent' | 'down'} state silent: no sample for more than 1.5 s
 * @property {number} age ms since the last sample; 0 if there was none
 * @property {number} deaths since the start of the gateway
 * @property {number} [draining] earlier processes that let their clients go; `sample` includes them
 * @property {WorkerSample | null} sample the last one; null while starting or down, and before the first
 */

/**
 * All workers together; `cpu` and `memory` include the primary.
 * @typedef {object} Totals
 * @property {number} workers up
 * @property {{user: number, system: number}} cpu shares of one core
 * @property {{rss: number, heap_used: number, heap_total: number, external: number, native: number,
 *   kernel: number | null}} memory native: rss without heap_total; kernel: kernel memory of open connections (see
 *   socket-memory.js), null on systems other than Linux
 * @property {{utilization: number, ticks: Ticks}} loop of the workers: utilization of the busiest; merged ticks
 * @property {GcKinds} gc of the workers
 * @property {Connections} connections
 * @property {number} subscriptions
 * @property {number} channels with subscribers; one with subscribers in several workers counts once with the memory
 *   engine, once per worker with Redis
 * @property {number} windows of batched channels, with items
 * @property {{bytes: number, largest: number}} outbox
 * @property {Record<string, HookState>} hooks every one of the configuration
 * @property {Counts} counts of samples received since the previous snapshot
 */

/**
 * @typedef {object} MachineSample from /proc of Linux; fields are null elsewhere
 * @property {number} cores
 * @property {{user: number, system: number, idle: number, iowait: number, steal: number} | null} cpu shares of all
 *   cores over the interval; nice counts as user, interrupts as system
 * @property {{total: number, used: number, free: number, available: number, caches: number, slab: number | null}}
 *   memory bytes; `used`: total without free and caches (page cache, buffers, reclaimable slab)
 * @property {number[] | null} load over 1, 5 and 15 minutes
 * @property {{used: number, tcp: {inuse: number, orphan: number, time_wait: number, alloc: number, memory: number}} |
 *   null} sockets memory in bytes
 * @property {{rx_bytes: number, tx_bytes: number, rx_packets: number, tx_packets: number,
 *   interfaces: Record<string, {rx_bytes: number, tx_bytes: number, rx_packets: number, tx_packets: number}>} | null}
 *   network per second; sums cover interfaces with a device; without any, all but loopback; loopback if these are idle
 * @property {{overflows: number, drops: number} | null} listen connections refused by listen queues, over the interval
 * @property {{open: number, limit: number} | null} files of the whole machine
 */

/**
 * @typedef {object} Capacity memory of a connection, and the room left
 * @property {number | null} bytes_per_connection user-space memory above the idle gateway, per connection; null below
 *   1,000 connections
 * @property {number | null} kernel_per_connection kernel memory of a connection: socket and queued bytes; null below
 *   1,000 connections and on systems other than Linux
 * @property {number | null} fits estimate of further connections; null if unknown
 * @property {'memory' | 'files' | 'connection_limit' | null} bound the resource that ends first
 */

/**
 * Counters since the start of the gateway for a process slot: they survive the death of the process and only grow.
 * @typedef {object} Lifetime
 * @property {{user: number, system: number}} cpu ms
 * @property {number} active ms in which the loop was busy
 * @property {{count: number, sum: number, within: number[]}} ticks sum: ms; within: ticks up to each of TICK_BOUNDS
 *   (see lifetimes.js)
 * @property {GcKinds} gc
 * @property {Flow} in of a worker; zero for the primary
 * @property {Flow} out
 */

/**
 * Lifetimes of the node, complete whichever worker answers a scrape.
 * @typedef {object} Lifetimes
 * @property {Lifetime} primary
 * @property {Lifetime[]} workers by index
 * @property {{cpu: {user: number, system: number, idle: number, iowait: number, steal: number} | null,
 *   network: {rx_bytes: number, tx_bytes: number, rx_packets: number, tx_packets: number} | null,
 *   listen: {overflows: number, drops: number} | null}} machine `cpu`: ms of all cores together
 */

/**
 * @typedef {object} GatewayEvent
 * @property {number} time unix ms
 * @property {'info' | 'warn' | 'error'} level
 * @property {'started' | 'worker_started' | 'worker_died' | 'worker_silent' | 'worker_draining' | 'reloaded' |
 *   'slow_clients' | 'overload' | 'redis_lost' | 'redis_back' | 'gc' | 'stopping' | 'listen_overflow' | 'csv' | 'proxy'
 *   | 'log' | 'files' | 'driver'} kind
 * @property {string} text one readable line
 * @property {number | null} worker index
 */

/**
 * @typedef {object} NodeFacts
 * @property {string} id
 * @property {string} name
 * @property {string} version of Halley
 * @property {string} url it listens on
 * @property {number} pid of the primary
 * @property {number} started_at unix ms
 * @property {string} engine memory or redis
 * @property {string} driver uws or node
 * @property {string} driver_fallback why it is node although uws was wanted, with the cure; empty if it was not
 * @property {string} node_version v20.20.0
 * @property {number} workers configured
 */

/**
 * The lifecycle log (docs/lifecycle.md). Counts are those since the start of the gateway.
 * @typedef {object} LifecycleFigures
 * @property {{clients: number, bytes: number, refused: number}} journal of connected clients; `refused`: clients and
 *   subscriptions that found it full
 * @property {number} worker_dropped events that workers have dropped
 * @property {number} taken_over disconnects of dead nodes that this node has logged
 * @property {Record<string, {written: number, dropped: Record<string, number>, queue_bytes: number, failing: boolean}>}
 *   sinks by name: file, webhook, redis; `dropped`: records, by reason
 */

/**
 * A consumer (docs/consumers.md). Counts are those since the start of the gateway.
 * @typedef {object} ConsumerFigures
 * @property {string} name @property {string} type
 * @property {number} processed messages, skipped ones included
 * @property {Record<string, number>} skipped by reason
 * @property {number} errors failed tries, and failures of the source
 * @property {number} retries failed tries of messages that are tried again
 * @property {number} age ms, of the oldest message in work; 0: none, or unknown
 * @property {number} backoff ms before the next try of what fails; 0: nothing fails
 * @property {number | null} lag messages that wait at the source; null: unknown
 *
 * A republisher (docs/republish.md). Counts are those since the start of the gateway.
 * @typedef {object} RepublisherFigures
 * @property {string} name
 * @property {number} sent messages, with repeats @property {number} confirmed
 * @property {number} returned by the queue: nobody takes them @property {number} refused by the queue
 * @property {number} dropped by its own full queue
 * @property {number} unreached publications that the primary has dropped: there was no queue process for long, or it did
 *   not read
 * @property {number} abandoned publications that were in queue processes that ended without a word of them: at most so many
 *   are lost
 * @property {number} queued messages without an outcome @property {number} queued_bytes
 * @property {number} age ms, of the oldest of these; 0: none
 * @property {boolean} up whether it is connected
 *
 * @typedef {{list: ConsumerFigures[], api_errors: Record<string, number>}} ConsumersFigures `api_errors`: of their calls,
 *   by code
 */

/**
 * One node, one second.
 * @typedef {object} Snapshot
 * @property {number} version of the schema
 * @property {number} seq from 1, since the start of the gateway
 * @property {number} time unix ms
 * @property {number} interval ms since the previous snapshot
 * @property {number} [collect] ms from the full second until everything was read and merged
 * @property {NodeFacts} node
 * @property {ProcessSample} primary
 * @property {WorkerView[]} workers by index
 * @property {Totals} totals
 * @property {Counts} counters totals.counts since the start of the gateway; they survive the death of workers
 * @property {Lifetimes} lifetimes
 * @property {MachineSample} machine
 * @property {Capacity} capacity
 * @property {GatewayEvent[]} events since the previous snapshot
 * @property {{file: string, bytes: number, max_bytes: number, rotations: number, error: string | null} | null} csv
 * @property {LifecycleFigures | null} lifecycle null: no lifecycle log
 * @property {ConsumersFigures | null} consumers null: no consumers
 * @property {RepublisherFigures[] | null} republishers null: none
 */

// The stats stream: one JSON text a line, over the gateway's Unix socket and over HTTP (admin). The gateway writes
// `hello`, then a message a second. Over the Unix socket the client may send commands, also one JSON text a line.

/**
 * @typedef {{type: 'hello', schema: number, node: NodeFacts, history: Snapshot[], events: GatewayEvent[]}} Hello
 *   `history`: up to 300 snapshots, oldest first, without lifetimes; spaces, buckets, interfaces, names of
 *   counts, and `workers` of more than 16 are empty; `events`: the latest
 * @typedef {{type: 'snapshot', snapshot: Snapshot}} SnapshotMessage
 * @typedef {{type: 'log', line: string}} LogMessage a log line as JSON text, only after `{"type":"log","on":true}`
 * @typedef {{type: 'done', command: string, error: string | null, text?: string}} DoneMessage answers a command;
 *   `text`: what it has done, one line
 * @typedef {Hello | SnapshotMessage | LogMessage | DoneMessage} StatsMessage
 * @typedef {{type: 'log', on: boolean} | {type: 'gc', worker: number | null} | {type: 'restart', worker: number |
 *   null} | {type: 'reload'} | {type: 'stop'}} StatsCommand worker: index; null for all
 */
