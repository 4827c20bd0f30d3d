// The schema of snapshots, one a second, for the dashboard, the CSV file, Prometheus and the admin page. docs/stats.md describes it
// for users. New fields keep the version; a changed meaning raises it.
//
// Units: times in ms, sizes in bytes, shares from 0 to 1 (of one core for a process, of all cores for the machine). Counts
// over the interval are those since the previous sample; everything else is the current state.

/** Version of the schema. */
export const SCHEMA_VERSION = 1

/**
 * How long events waited for the event loop, on a 10 ms grid (of the primary: 50 ms). `buckets` is the histogram itself, for merging:
 * index, count, index, count ... (see tick-histogram.js); percentiles are never averaged.
 * @typedef {object} Ticks
 * @property {number} count
 * @property {number} min ms
 * @property {number} avg
 * @property {number} p50
 * @property {number} p90
 * @property {number} p99
 * @property {number} max
 * @property {number[]} buckets
 */

/**
 * @typedef {object} GcKind
 * @property {number} count over the interval
 * @property {number} pause ms over the interval
 */

/**
 * A process: the primary, or a worker.
 * @typedef {object} ProcessSample
 * @property {number} pid
 * @property {number} uptime ms
 * @property {{user: number, system: number}} cpu shares of one core, over the interval
 * @property {{utilization: number, ticks: Ticks}} loop utilization: share of the interval in which the loop was not waiting for events
 * @property {ProcessMemory} memory
 * @property {{minor: GcKind, major: GcKind, incremental: GcKind, weak: GcKind}} gc
 * @property {{open: number | null, limit: number | null}} files open descriptors and the soft limit; null where it is not known
 */

/**
 * @typedef {object} ProcessMemory
 * @property {number} rss
 * @property {number} heap_used
 * @property {number} heap_total committed
 * @property {number} heap_limit
 * @property {number} external includes array_buffers
 * @property {number} array_buffers
 * @property {Record<string, {used: number, total: number}>} spaces of the heap, by V8's names without `_space`: new, old, code, large_object ...
 */

/** @typedef {{messages: number, bytes: number}} Flow over the interval; bytes of payloads, without the framing of WebSocket, HTTP or TCP */

/** @typedef {{connects: number, in: Flow, out: Flow}} TransportCounts */

/**
 * What a worker has done over the interval, by names and codes. Names that did not occur are absent.
 * @typedef {object} Counts
 * @property {number} accepts connections that were opened
 * @property {number} connects clients that completed the protocol's connect
 * @property {Flow} in from clients; messages are commands and pongs
 * @property {Flow} out to clients; messages are replies and pushes (also those that share a frame) and pings
 * @property {Record<string, TransportCounts>} transports the same by transport: websocket, http_stream, sse, poll, uni_websocket, uni_sse,
 *   uni_http_stream, uni_poll
 * @property {number} publishes publications taken from clients and from the server API
 * @property {number} deliveries publications handed to subscribers, one for each of them
 * @property {Record<string, number>} commands of clients, by method
 * @property {Record<string, number>} errors replies with an error, by code
 * @property {Record<string, number>} closes connections that ended, by code: what the gateway said, or what the client said (1000, 1001,
 *   1005, 1006 ...); `0` for an HTTP client that left
 * @property {Record<string, number>} unsubscribes that the gateway told clients, by code
 * @property {{recovered: number, failed: number}} recoveries subscriptions that asked to recover, by what came of it
 * @property {Record<string, number>} api calls of the server API, by method
 * @property {Record<string, number>} api_errors by code
 */

/**
 * @typedef {object} Connections
 * @property {number} open transports that are open, connected or not
 * @property {number} connected clients
 * @property {Record<string, Record<string, number>>} by connected clients by transport, then by codec (json, protobuf)
 */

/**
 * What a worker sends to the primary once a second.
 * @typedef {ProcessSample & {
 *   index: number,
 *   time: number,
 *   interval: number,
 *   connections: Connections,
 *   subscriptions: number,
 *   channels: number,
 *   outbox: {bytes: number, largest: number},
 *   counts: Counts
 * }} WorkerSample `time`: unix ms; `interval`: ms since its sample before; `channels`: with subscribers in this worker; `outbox`: what clients
 *   have not taken yet, of all of them and of the one with the most
 */

/**
 * A worker's place in a snapshot. One that has died, or does not say anything, still has its place.
 * @typedef {object} WorkerView
 * @property {number} index
 * @property {'starting' | 'up' | 'silent' | 'down'} state silent: it has not sent a sample for more than 1.5 s
 * @property {number} age ms since its last sample; 0 if there was none
 * @property {number} deaths since the gateway has started
 * @property {WorkerSample | null} sample its last one; null when it is not there (starting, down), or has never sent one
 */

/**
 * All workers together.
 * @typedef {object} Totals
 * @property {number} workers that are up
 * @property {{user: number, system: number}} cpu shares of one core, the primary included
 * @property {{rss: number, heap_used: number, heap_total: number, external: number, native: number, kernel: number | null}} memory the primary
 *   included; native: rss without heap_total; kernel: of the kernel for open connections, see socket-memory.js; null elsewhere than on Linux
 * @property {{utilization: number, ticks: Ticks}} loop of the workers: the busiest loop; merged ticks
 * @property {{minor: GcKind, major: GcKind, incremental: GcKind, weak: GcKind}} gc of the workers
 * @property {Connections} connections
 * @property {number} subscriptions
 * @property {number} channels with subscribers; one that has some in several workers counts once with the memory engine, and once for each
 *   of them with Redis
 * @property {{bytes: number, largest: number}} outbox
 * @property {Counts} counts of the samples that came in since the snapshot before
 */

/**
 * @typedef {object} MachineSample what Linux tells in /proc; fields are null elsewhere
 * @property {number} cores
 * @property {{user: number, system: number, idle: number, iowait: number, steal: number} | null} cpu shares of all cores over the interval; nice
 *   counts as user, interrupts as system
 * @property {{total: number, used: number, free: number, available: number, caches: number, slab: number | null}} memory bytes; `used` is total
 *   without free and caches (page cache, buffers, reclaimable slab)
 * @property {number[] | null} load over 1, 5 and 15 minutes
 * @property {{used: number, tcp: {inuse: number, orphan: number, time_wait: number, alloc: number, memory: number}} | null} sockets memory in bytes
 * @property {{rx_bytes: number, tx_bytes: number, rx_packets: number, tx_packets: number, interfaces: Record<string, {rx_bytes: number,
 *   tx_bytes: number, rx_packets: number, tx_packets: number}>} | null} network a second; the sums are of interfaces with a device of their
 *   own; where there is none, of all but the loopback one; and of that one where nothing else has traffic
 * @property {{overflows: number, drops: number} | null} listen connections that did not fit into a listen queue, over the interval
 * @property {{open: number, limit: number} | null} files of the whole machine
 */

/**
 * @typedef {object} Capacity what was measured of a connection, and what follows from it
 * @property {number | null} bytes_per_connection user-space memory above that of the gateway without connections, for each; null below 1,000
 *   connections
 * @property {number | null} kernel_per_connection what the kernel holds for each: the socket, and what is queued in it; null likewise, and
 *   elsewhere than on Linux
 * @property {number | null} fits about so many more connections; null when it is not known
 * @property {'memory' | 'files' | 'connection_limit' | null} bound what ends first
 */

/**
 * What one process has done since the gateway started, or all that had its place one after another: it only grows, whichever of them die.
 * @typedef {object} Lifetime
 * @property {{user: number, system: number}} cpu ms
 * @property {number} active ms for which the loop was not waiting for events
 * @property {{count: number, sum: number, within: number[]}} ticks `sum`: ms; `within`: how many were no longer than each of TICK_BOUNDS (see lifetimes.js)
 * @property {{minor: GcKind, major: GcKind, incremental: GcKind, weak: GcKind}} gc
 * @property {Flow} in of a worker; nothing of the primary
 * @property {Flow} out
 */

/**
 * The same of everything: what a scrape now and then must not miss, whichever worker it asks.
 * @typedef {object} Lifetimes
 * @property {Lifetime} primary
 * @property {Lifetime[]} workers by index
 * @property {{
 *   cpu: {user: number, system: number, idle: number, iowait: number, steal: number} | null,
 *   network: {rx_bytes: number, tx_bytes: number, rx_packets: number, tx_packets: number} | null,
 *   listen: {overflows: number, drops: number} | null
 * }} machine `cpu`: ms of all cores together
 */

/**
 * @typedef {object} GatewayEvent
 * @property {number} time unix ms
 * @property {'info' | 'warn' | 'error'} level
 * @property {'started' | 'worker_started' | 'worker_died' | 'worker_silent' | 'reloaded' | 'slow_clients' | 'redis_lost' | 'redis_back' | 'gc' |
 *   'stopping' | 'listen_overflow' | 'csv'} kind
 * @property {string} text one line for people
 * @property {number | null} worker index
 */

/**
 * @typedef {object} NodeFacts
 * @property {string} id
 * @property {string} name
 * @property {string} version of Halley
 * @property {string} url where it listens
 * @property {number} pid of the primary
 * @property {number} started_at unix ms
 * @property {string} engine memory or redis
 * @property {string} driver uws or node
 * @property {string} node_version v20.20.0
 * @property {number} workers configured
 */

/**
 * One node, one second.
 * @typedef {object} Snapshot
 * @property {number} version of the schema
 * @property {number} seq 1, 2 ... since the gateway has started
 * @property {number} time unix ms
 * @property {number} interval ms since the snapshot before
 * @property {number} [collect] ms from the full second until everything was read and merged
 * @property {NodeFacts} node
 * @property {ProcessSample} primary
 * @property {WorkerView[]} workers by index
 * @property {Totals} totals
 * @property {Counts} counters as totals.counts, but since the gateway has started: they only grow, whichever workers die
 * @property {Lifetimes} lifetimes
 * @property {MachineSample} machine
 * @property {Capacity} capacity
 * @property {GatewayEvent[]} events since the snapshot before
 * @property {{file: string, bytes: number, max_bytes: number, rotations: number, error: string | null} | null} csv
 */

// The stats stream: one JSON text a line, the same over the gateway's Unix socket and over HTTP (admin). The gateway writes
// `hello` first, then a message a second; over the Unix socket the other side may send commands, a JSON text a line.

/**
 * @typedef {{type: 'hello', schema: number, node: NodeFacts, history: Snapshot[], events: GatewayEvent[]}} Hello `history`: up to 300 snapshots, oldest
 *   first, thinned (spaces, buckets, interfaces and names of counts are empty, and so is `workers` of more than 16; no lifetimes); `events`: the last ones
 * @typedef {{type: 'snapshot', snapshot: Snapshot}} SnapshotMessage
 * @typedef {{type: 'log', line: string}} LogMessage one line of the gateway's log as JSON text, only after `{"type":"log","on":true}`
 * @typedef {{type: 'done', command: string, error: string | null}} DoneMessage the answer to a command
 * @typedef {Hello | SnapshotMessage | LogMessage | DoneMessage} StatsMessage
 * @typedef {{type: 'log', on: boolean} | {type: 'gc', worker: number | null} | {type: 'restart', worker: number} | {type: 'stop'}} StatsCommand
 *   `worker`: index; null for all
 */
