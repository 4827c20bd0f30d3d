// The shape of snapshots, one a second, for the dashboard, the CSV file, Prometheus and the admin page. table.js describes
// the fields, docs/stats.md lists them for users. New fields keep the version; a changed meaning raises it.

export const SCHEMA_VERSION = 1

/** What a snapshot has of parts that are not there. */
export const NO_OUTPUTS = Object.freeze({ csv: null, lifecycle: null, consumers: null, republishers: null })

/** @typedef {Record<string, number>} ByName names that did not occur are absent */

/**
 * Event-loop delay. `buckets` is the histogram, for merging: index, count, index, count ... (see tick-histogram.js);
 * percentiles are never averaged.
 * @typedef {{count: number, min: number, avg: number, p50: number, p90: number, p99: number, max: number,
 *   buckets: number[]}} Ticks
 */

/** @typedef {{count: number, pause: number}} GcKind */
/** @typedef {{minor: GcKind, major: GcKind, incremental: GcKind, weak: GcKind}} GcKinds */
/** @typedef {{user: number, system: number}} Cpu */

/**
 * The primary or a worker.
 * @typedef {object} ProcessSample
 * @property {number} pid
 * @property {number} uptime
 * @property {Cpu} cpu
 * @property {{utilization: number, ticks: Ticks}} loop
 * @property {ProcessMemory} memory
 * @property {GcKinds} gc
 * @property {{open: number | null, limit: number | null}} files
 * @property {{dropped: number, error: string | null}} log
 *
 * @typedef {{rss: number, heap_used: number, heap_total: number, external: number, array_buffers: number}} Memory
 * @typedef {Memory & {heap_limit: number, spaces: Record<string, {used: number, total: number}>}} ProcessMemory
 */

/** @typedef {{messages: number, bytes: number}} Flow */
/** @typedef {{connects: number, in: Flow, out: Flow}} TransportCounts */

/**
 * Counters of the table: a number, or numbers by name.
 * @typedef {keyof typeof import('./table.js').COUNTERS} CounterPath
 * @typedef {CounterPath extends infer P ? P extends `${infer Name}.<${string}` ? Name : never : never} NamedCounter
 * @typedef {Exclude<CounterPath, `${string}.<${string}`>} PlainCounter
 */

/**
 * Events of a worker over the interval.
 * @typedef {Record<PlainCounter, number> & Record<NamedCounter, ByName> & {in: Flow, out: Flow,
 *   transports: Record<string, TransportCounts>, recoveries: {recovered: number, failed: number},
 *   hooks: Record<string, HookCounts>, batches: BatchCounts}} Counts
 *
 * @typedef {{items: number, within: number[], flushes: ByName, conflated: ByName}} BatchCounts
 * @typedef {{calls: number, time: number, within: number[], failures: ByName}} HookCounts
 */

/** @typedef {{inflight: number, down: number}} HookState */
/** @typedef {{open: number, connected: number, by: Record<string, ByName>}} Connections */

/**
 * What is merged of the samples of workers.
 * @typedef {object} State
 * @property {Connections} connections
 * @property {number} subscriptions
 * @property {number} channels
 * @property {number} windows
 * @property {{bytes: number, largest: number}} outbox
 * @property {Record<string, HookState>} hooks every one of the configuration
 * @property {Counts} counts
 */

/**
 * A worker's message to the primary, once a second.
 * @typedef {ProcessSample & State & {index: number, time: number, interval: number, accepting: boolean,
 *   overload: 'event_loop' | 'memory' | null}} WorkerSample
 */

/**
 * A worker slot in a snapshot; it is present in every state.
 * @typedef {object} WorkerView
 * @property {number} index
 * @property {'starting' | 'up' | 'silent' | 'down'} state
 * @property {number} age
 * @property {number} deaths
 * @property {number} [draining]
 * @property {WorkerSample | null} sample the last one; null while starting or down, and before the first
 */

/**
 * All workers together; `cpu` and `memory` include the primary. `counts`: of samples received since the previous
 * snapshot.
 * @typedef {State & {workers: number, cpu: Cpu, memory: Memory & {native: number, kernel: number | null},
 *   loop: {utilization: number, ticks: Ticks}, gc: GcKinds}} Totals
 */

/** @typedef {{rx_bytes: number, tx_bytes: number, rx_packets: number, tx_packets: number}} Network */
/** @typedef {Cpu & {idle: number, iowait: number, steal: number}} MachineCpu */

/**
 * @typedef {object} MachineSample from /proc of Linux; fields are null elsewhere
 * @property {number} cores
 * @property {MachineCpu | null} cpu
 * @property {{total: number, used: number, free: number, available: number, caches: number, slab: number | null}} memory
 * @property {number[] | null} load
 * @property {{used: number, tcp: {inuse: number, orphan: number, time_wait: number, alloc: number, memory: number}} |
 *   null} sockets
 * @property {(Network & {interfaces: Record<string, Network>}) | null} network
 * @property {{overflows: number, drops: number} | null} listen
 * @property {{open: number, limit: number} | null} files
 */

/**
 * @typedef {object} Capacity
 * @property {number | null} bytes_per_connection
 * @property {number | null} kernel_per_connection
 * @property {number | null} fits
 * @property {'memory' | 'files' | 'connection_limit' | null} bound
 */

/**
 * Counters since the start of the gateway for a process slot: they survive the death of the process and only grow.
 * @typedef {object} Lifetime
 * @property {Cpu} cpu ms
 * @property {number} active
 * @property {{count: number, sum: number, within: number[]}} ticks
 * @property {GcKinds} gc
 * @property {Flow} in of a worker; zero for the primary
 * @property {Flow} out
 */

/**
 * Lifetimes of the node, complete whichever worker answers a scrape.
 * @typedef {object} Lifetimes
 * @property {Lifetime} primary
 * @property {Lifetime[]} workers by index
 * @property {{cpu: MachineCpu | null, network: Network | null, listen: {overflows: number, drops: number} | null}}
 *   machine `cpu`: ms
 */

/**
 * @typedef {object} GatewayEvent
 * @property {number} time unix ms
 * @property {'info' | 'warn' | 'error'} level
 * @property {keyof typeof import('./table.js').EVENTS} kind
 * @property {string} text one readable line
 * @property {number | null} worker index
 */

/**
 * @typedef {object} NodeFacts
 * @property {string} id
 * @property {string} name
 * @property {string} version
 * @property {string} url
 * @property {number} pid
 * @property {number} started_at
 * @property {string} engine
 * @property {string} driver
 * @property {string} driver_fallback
 * @property {string} node_version
 * @property {number} workers
 */

/**
 * The lifecycle log (docs/lifecycle.md), consumers (docs/consumers.md) and republishers (docs/republish.md). Counts are
 * those since the start of the gateway.
 * @typedef {object} LifecycleFigures
 * @property {{clients: number, bytes: number, refused: number}} journal
 * @property {number} worker_dropped
 * @property {number} taken_over
 * @property {Record<string, {written: number, dropped: ByName, queue_bytes: number, failing: boolean}>} sinks
 *
 * @typedef {{name: string, type: string, processed: number, skipped: ByName, errors: number, retries: number,
 *   age: number, backoff: number, lag: number | null}} ConsumerFigures
 * @typedef {{list: ConsumerFigures[], api_errors: ByName}} ConsumersFigures
 *
 * @typedef {{name: string, sent: number, confirmed: number, returned: number, refused: number, dropped: number,
 *   unreached: number, abandoned: number, queued: number, queued_bytes: number, age: number, up: boolean}}
 *   RepublisherFigures
 */

/**
 * One node, one second.
 * @typedef {object} Snapshot
 * @property {number} version
 * @property {number} seq
 * @property {number} time
 * @property {number} interval
 * @property {number} [collect]
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
 * @property {LifecycleFigures | null} lifecycle
 * @property {ConsumersFigures | null} consumers
 * @property {RepublisherFigures[] | null} republishers
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
