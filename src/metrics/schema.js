// The shape of snapshots. table.js describes the fields, docs/stats.md lists them for users. New fields keep the
// version; a changed meaning raises it.

export const SCHEMA_VERSION = 1

export const NO_OUTPUTS = Object.freeze({ csv: null, lifecycle: null, consumers: null, republishers: null })

/** @typedef {Record<string, number>} ByName without 0 */

/**
 * Event-loop delay. `buckets`: histogram for merging: index, count, index, count ... (see tick-histogram.js);
 * percentiles are never averaged.
 * @typedef {{count: number, min: number, avg: number, p50: number, p90: number, p99: number, max: number,
 *   buckets: number[]}} Ticks
 */

/** @typedef {{count: number, pause: number}} GcKind */
/** @typedef {{minor: GcKind, major: GcKind, incremental: GcKind, weak: GcKind}} GcKinds */
/** @typedef {{user: number, system: number}} Cpu */

/**
 * The primary or a worker.
 * @typedef {{pid: number, uptime: number, cpu: Cpu, loop: {utilization: number, ticks: Ticks}, memory: ProcessMemory,
 *   gc: GcKinds, files: {open: number | null, limit: number | null}, log: {dropped: number, error: string | null}}}
 *   ProcessSample
 *
 * @typedef {{rss: number, heap_used: number, heap_total: number, external: number, array_buffers: number}} Memory
 * @typedef {Memory & {heap_limit: number, spaces: Record<string, {used: number, total: number}>}} ProcessMemory
 */

/** @typedef {{messages: number, bytes: number}} Flow */
/** @typedef {{connects: number, in: Flow, out: Flow}} TransportCounts */

/**
 * @typedef {keyof typeof import('./table.js').COUNTERS} CounterPath
 * @typedef {CounterPath extends infer P ? P extends `${infer Name}.<${string}` ? Name : never : never} NamedCounter
 * @typedef {Exclude<CounterPath, `${string}.<${string}`>} PlainCounter
 *
 * Events of a worker over the interval.
 * @typedef {Record<PlainCounter, number> & Record<NamedCounter, ByName> & {in: Flow, out: Flow,
 *   transports: Record<string, TransportCounts>, recoveries: {recovered: number, failed: number},
 *   hooks: Record<string, HookCounts>, batches: BatchCounts, maps: MapCounts,
 *   polls: PollCounts}} Counts
 *
 * @typedef {{items: number, within: number[], flushes: ByName, conflated: ByName}} BatchCounts
 * @typedef {{calls: number, time: number, within: number[], failures: ByName}} HookCounts
 * @typedef {{publishes: number, removals: number, expiries: number}} MapCounts
 * @typedef {{calls: number, keys: number, failures: number, updates: number}} PollCounts
 */

/** @typedef {{inflight: number, down: number}} HookState */
/** @typedef {{open: number, connected: number, by: Record<string, ByName>}} Connections */

/**
 * @typedef {object} State merged over workers
 * @property {Connections} connections
 * @property {number} subscriptions
 * @property {number} channels
 * @property {number} windows
 * @property {{bytes: number, largest: number}} outbox
 * @property {Record<string, HookState>} hooks all configured ones
 * @property {Counts} counts
 */

/**
 * A worker's message to the primary, once a second.
 * @typedef {ProcessSample & State & {index: number, time: number, interval: number, accepting: boolean,
 *   overload: 'event_loop' | 'memory' | null}} WorkerSample
 */

/**
 * A worker slot, present in every state.
 * @typedef {object} WorkerView
 * @property {number} index
 * @property {'starting' | 'up' | 'silent' | 'down'} state
 * @property {number} age
 * @property {number} deaths
 * @property {number} [draining]
 * @property {WorkerSample | null} sample null while starting or down, and before the first
 */

/**
 * All workers together; `cpu` and `memory` include the primary. `counts`: since the previous snapshot.
 * @typedef {State & {workers: number, cpu: Cpu, memory: Memory & {native: number, kernel: number | null},
 *   loop: {utilization: number, ticks: Ticks}, gc: GcKinds, maps: {keys: number | null}, polls: {keys: number},
 *   denylist: Record<string, number>}} Totals
 *
 * Figures of the broker in the primary, counts since the last call. `maps`: null with another engine; `polls`: null
 * without a broker; `denylist`: entries by kind.
 * @typedef {{maps: {keys: number, counts: MapCounts} | null, polls: {keys: number, counts: PollCounts} | null,
 *   denylist?: Record<string, number>}} BrokerFigures
 */

/** @typedef {{rx_bytes: number, tx_bytes: number, rx_packets: number, tx_packets: number}} Network */
/** @typedef {Cpu & {idle: number, iowait: number, steal: number}} MachineCpu */

/**
 * @typedef {object} MachineSample null on systems other than Linux
 * @property {number} cores
 * @property {MachineCpu | null} cpu
 * @property {{total: number, used: number, free: number, available: number, caches: number, slab: number | null}}
 *   memory
 * @property {number[] | null} load
 * @property {{used: number, tcp: {inuse: number, orphan: number, time_wait: number, alloc: number, memory: number}} |
 *   null} sockets
 * @property {(Network & {interfaces: Record<string, Network>}) | null} network
 * @property {{overflows: number, drops: number} | null} listen
 * @property {{open: number, limit: number} | null} files
 */

/**
 * @typedef {{bytes_per_connection: number | null, kernel_per_connection: number | null, fits: number | null, bound:
 *   'memory' | 'files' | 'connection_limit' | null}} Capacity
 */

/**
 * Monotonic counters of a process slot since the start of the gateway.
 * @typedef {object} Lifetime
 * @property {Cpu} cpu ms
 * @property {number} active
 * @property {{count: number, sum: number, within: number[]}} ticks
 * @property {GcKinds} gc
 * @property {Flow} in zero for the primary
 * @property {Flow} out
 */

/**
 * @typedef {object} Lifetimes complete in each worker
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
 * @typedef {{id: string, name: string, version: string, url: string, pid: number, started_at: number, engine: string,
 *   driver: string, driver_fallback: string, node_version: string, workers: number}} NodeFacts
 */

/**
 * docs/lifecycle.md, docs/consumers.md, docs/republish.md. Counts are since the start of the gateway.
 * @typedef {{journal: {clients: number, bytes: number, refused: number}, worker_dropped: number, taken_over: number,
 *   sinks: Record<string, {written: number, dropped: ByName, queue_bytes: number, failing: boolean}>}} LifecycleFigures
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
 * @property {Counts} counters since the start of the gateway
 * @property {Lifetimes} lifetimes
 * @property {MachineSample} machine
 * @property {Capacity} capacity
 * @property {GatewayEvent[]} events since the previous snapshot
 * @property {{file: string, bytes: number, max_bytes: number, rotations: number, error: string | null} | null} csv
 * @property {LifecycleFigures | null} lifecycle
 * @property {ConsumersFigures | null} consumers
 * @property {RepublisherFigures[] | null} republishers
 */

// The stats stream: one JSON text a line, over the gateway's Unix socket and HTTP (admin): `hello`, then a message a
// second. Over the Unix socket the client may send commands.

/**
 * @typedef {{type: 'hello', schema: number, node: NodeFacts, history: Snapshot[], events: GatewayEvent[]}} Hello
 *   `history`: up to 300 snapshots, oldest first, without lifetimes; spaces, buckets, interfaces, names of
 *   counts, and `workers` of more than 16 are empty
 * @typedef {{type: 'snapshot', snapshot: Snapshot}} SnapshotMessage
 * @typedef {{type: 'log', line: string}} LogMessage after `{"type":"log","on":true}`
 * @typedef {{type: 'done', command: string, error: string | null, text?: string}} DoneMessage a command's reply
 * @typedef {Hello | SnapshotMessage | LogMessage | DoneMessage} StatsMessage
 * @typedef {{type: 'log', on: boolean} | {type: 'gc', worker: number | null} | {type: 'restart', worker: number |
 *   null} | {type: 'reload'} | {type: 'stop'}} StatsCommand worker: index; null for all
 */
