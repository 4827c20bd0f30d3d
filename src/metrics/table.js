// The table of metrics: one row per field of a snapshot. The totals of a node, the thinned history, the CSV file, the
// Prometheus metrics and the tables of docs/stats.md, docs/csv.md and docs/metrics.md are made from it. A new counter
// is one row, and the line that increments it. Without imports: the admin page loads this file.
//
// Paths are those of docs/stats.md: `[]` is each item of an array, `<name>` each value of an object by name.

/** @typedef {'ms' | 'bytes' | 'share' | 'share of all cores'} Unit share: of one core, or of the time; from 0 to 1 */

/**
 * @typedef {object} Options
 * @property {Unit} [unit] none: a count
 * @property {'sum' | 'max' | 'ticks'} [merge] how the values of several processes become one; none: the totals do not
 *   have the field, and for several processes of one worker that of the newest counts
 * @property {[place: number, name: string]} [csv] column; places do not change, new columns get the next one
 * @property {string} [prometheus] name of the metric, of each process if the section has several
 * @property {string} [total] name of a Prometheus metric of the merged value
 * @property {Record<string, string>} [labels] of these metrics with their default values, in order; default: the names
 *   in the path
 * @property {(value: any) => number} [value] of the column and the metrics, if the field itself is no number
 * @property {string[]} [at] where the column and the metrics are read, if not in the whole section
 *
 * @typedef {Options & {help: string, type: 'gauge' | 'counter' | 'field'}} Row field: documented, but no metric
 */

/** @param {string} help @param {Options} [options] @returns {Row} a current value */
const gauge = (help, options) => ({ type: 'gauge', help, ...options })
/** @param {string} help @param {Options} [options] @returns {Row} a count of events */
const counter = (help, options) => ({ type: 'counter', help, ...options })
/** @param {string} help @param {Options} [options] @returns {Row} */
const field = (help, options) => ({ type: 'field', help, ...options })

const yes = (/** @type {unknown} */ value) => Number(value !== null)

/** Upper bounds of the counted ticks, ms. */
export const TICK_BOUNDS = Object.freeze([1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000])
/** Upper bounds of the counted durations of hooks, ms: those of Centrifugo, and two for modules in process. */
export const DURATION_BOUNDS = Object.freeze([0.1, 1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000])
/** Upper bounds of the counted items of a flush. */
export const BATCH_BOUNDS = Object.freeze([1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000])
export const GC_KINDS = /** @type {const} */ (['minor', 'major', 'incremental', 'weak'])

/** @param {readonly number[]} bounds */
const list = bounds =>
  bounds
    .map(bound => bound.toLocaleString('en-US'))
    .join(', ')
    .replace(/, ([^ ]+)$/, ' and $1')

/** @type {Record<string, Row>} */
const SNAPSHOT = {
  version: field('Version of the schema.'),
  seq: gauge('Number of the snapshot since the start of the gateway, from 1.', { csv: [1, 'seq'] }),
  time: gauge('Unix time of these figures.', {
    unit: 'ms',
    csv: [0, 'time'],
    prometheus: 'halley_snapshot_time_seconds',
  }),
  interval: gauge('Time since the previous snapshot; counts cover this time.', {
    unit: 'ms',
    csv: [3, 'interval_ms'],
  }),
  collect: gauge(
    "Time from the full second until everything was read and merged; about 150 ms of it wait for the workers' samples.",
    { unit: 'ms', csv: [4, 'collect_ms'] },
  ),
  'node.id': field('New after each start.'),
  'node.name': field('`node.name` of the configuration; host name and port by default.'),
  'node.version': field('Version of Halley.'),
  'node.url': field('URL for clients.'),
  'node.pid': field('Process id of the primary.'),
  'node.started_at': gauge('Unix time of the start of the gateway.', {
    unit: 'ms',
    prometheus: 'halley_start_time_seconds',
  }),
  'node.engine': field('`memory` or `redis`.'),
  'node.driver': field('`uws` or `node`.'),
  'node.driver_fallback': field(
    'Why it is `node` although `uws` was wanted, with the cure; empty if it was not.',
  ),
  'node.node_version': field('Version of Node.js.'),
  'node.workers': gauge('Configured workers.', { prometheus: 'halley_workers' }),
  primary: field('The primary process, see [A process](#a-process).'),
  'workers[]': field('By index, see [A worker](#a-worker).'),
  totals: field('All workers together, see [Totals](#totals).'),
  counters: field(
    'Counts since the start of the gateway, see [Counts](#counts). They only grow, also when a worker dies.',
  ),
  lifetimes: field('Other sums since the start, see [Lifetimes](#lifetimes).'),
  machine: field('See [The machine](#the-machine).'),
  'capacity.bytes_per_connection': gauge(
    'User-space memory per connection, without that of the idle gateway. Absent below 1,000 connections.',
    { unit: 'bytes', csv: [78, 'bytes_per_connection'], prometheus: 'halley_connection_memory_bytes' },
  ),
  'capacity.kernel_per_connection': gauge(
    'Kernel memory per connection: the socket and the data queued in it. Absent below 1,000 connections.',
    {
      unit: 'bytes',
      csv: [79, 'kernel_bytes_per_connection'],
      prometheus: 'halley_connection_kernel_memory_bytes',
    },
  ),
  'capacity.fits': gauge('Estimated number of additional connections that fit.', { csv: [80, 'fits'] }),
  'capacity.bound': field(
    'The limit reached first: `memory` (a tenth of it stays free), `files` (descriptors of all workers) or `connection_limit` (`client.connection_limit`).',
  ),
  'events[].time': field('Time of an event since the previous snapshot.'),
  'events[].level': field('`info`, `warn` or `error`.'),
  'events[].kind': field('See [Events](#events).'),
  'events[].text': field('One line for people.'),
  'events[].worker': field('Index of the worker concerned, or `null`.'),
  'csv.file': field('The CSV file; `csv` is `null` without one.'),
  'csv.bytes': gauge('Size of the CSV file.', { unit: 'bytes', prometheus: 'halley_csv_bytes' }),
  'csv.max_bytes': gauge('Size at which the CSV file is rotated.', {
    unit: 'bytes',
    prometheus: 'halley_csv_max_bytes',
  }),
  'csv.rotations': counter('Rotations of the CSV file.', { prometheus: 'halley_csv_rotations_total' }),
  'csv.error': gauge('Why the CSV file cannot be written (metric: 1), or `null` (0).', {
    value: yes,
    prometheus: 'halley_csv_failed',
  }),
  'lifecycle.journal.clients': gauge('Clients in the journal of the primary.', {
    prometheus: 'halley_lifecycle_journal_clients',
  }),
  'lifecycle.journal.bytes': gauge('Memory of that journal, estimated.', {
    unit: 'bytes',
    prometheus: 'halley_lifecycle_journal_bytes',
  }),
  'lifecycle.journal.refused': counter('Clients and subscriptions that found the journal full.', {
    prometheus: 'halley_lifecycle_journal_refused_total',
  }),
  'lifecycle.worker_dropped': counter(
    'Events that workers have dropped because the primary did not read them.',
    { prometheus: 'halley_lifecycle_worker_dropped_total' },
  ),
  'lifecycle.taken_over': counter('Disconnects of dead nodes that this node has logged.', {
    prometheus: 'halley_lifecycle_taken_over_total',
  }),
  'lifecycle.sinks.<sink>.written': counter('Records that a sink of the lifecycle log has taken.', {
    prometheus: 'halley_lifecycle_records_total',
  }),
  'lifecycle.sinks.<sink>.dropped.<reason>': counter(
    'Records that a sink of the lifecycle log did not get, by reason (docs/lifecycle.md).',
    { prometheus: 'halley_lifecycle_dropped_total' },
  ),
  'lifecycle.sinks.<sink>.queue_bytes': gauge('Memory of the records that wait for a sink.', {
    unit: 'bytes',
    prometheus: 'halley_lifecycle_queue_bytes',
  }),
  'lifecycle.sinks.<sink>.failing': gauge('1 while a sink of the lifecycle log takes no records.', {
    prometheus: 'halley_lifecycle_failing',
  }),
  'consumers.list[].name': field(
    'Name of a consumer; `consumers` is `null` without [consumers](consumers.md).',
  ),
  'consumers.list[].type': field('Its type.'),
  'consumers.list[].processed': counter('Messages of a consumer that are done, skipped ones included.', {
    csv: [84, 'consumers_processed_total'],
    prometheus: 'centrifugo_consumers_messages_processed_total',
  }),
  'consumers.list[].skipped.<reason>': counter(
    'Bad messages, which are not tried again, by reason (docs/consumers.md).',
    { csv: [85, 'consumers_skipped_total'], prometheus: 'halley_consumers_skipped_total' },
  ),
  'consumers.list[].errors': counter('Failed tries of messages, and failures of the source.', {
    csv: [86, 'consumers_errors_total'],
    prometheus: 'centrifugo_consumers_errors_total',
  }),
  'consumers.list[].retries': counter('Failed tries of messages that are tried again.', {
    prometheus: 'halley_consumers_retries_total',
  }),
  'consumers.list[].age': gauge('Age of the oldest message in work.', {
    unit: 'ms',
    merge: 'max',
    csv: [88, 'consumers_age_ms'],
    prometheus: 'halley_consumers_age_seconds',
  }),
  'consumers.list[].backoff': gauge('Delay before the next try of what fails.', {
    unit: 'ms',
    prometheus: 'halley_consumers_backoff_seconds',
  }),
  'consumers.list[].lag': gauge('Messages that wait at the source, where it says so.', {
    csv: [87, 'consumers_lag'],
    prometheus: 'halley_consumers_lag_messages',
  }),
  'consumers.api_errors.<code>': counter('Errors of the calls of the server API by consumers.'),
  'republishers[].name': field(
    'Name of a republisher; `republishers` is `null` without [republishing](republish.md).',
  ),
  'republishers[].sent': counter('Messages of a republisher that were sent, with repeats.', {
    prometheus: 'halley_republish_sent_total',
  }),
  'republishers[].confirmed': counter('Messages that the queue has taken.'),
  'republishers[].returned': counter('Messages that no queue of the destination takes.'),
  'republishers[].refused': counter('Messages that the destination has refused.'),
  'republishers[].dropped': counter('Messages that its full queue has dropped.'),
  'republishers[].unreached': counter(
    'Publications that the gateway has dropped because it had no queue process for long, or because that did not read.',
  ),
  'republishers[].abandoned': counter('Publications that were in queue processes that died, at most.'),
  'republishers[].queued': gauge('Messages without an outcome.', {
    prometheus: 'halley_republish_queue_messages',
  }),
  'republishers[].queued_bytes': gauge('Memory of these, about.', {
    unit: 'bytes',
    prometheus: 'halley_republish_queue_bytes',
  }),
  'republishers[].age': gauge('Age of the oldest of these.', {
    unit: 'ms',
    prometheus: 'halley_republish_age_seconds',
  }),
  'republishers[].up': gauge('1 while a republisher is connected.', { prometheus: 'halley_republish_up' }),
}

/**
 * @param {typeof GC_KINDS[number]} kind @param {string} what @param {number} place of the first of two columns
 * @returns {Record<string, Row>}
 */
const collections = (kind, what, place) => ({
  [`gc.${kind}.count`]: counter(`${what}.`, { merge: 'sum', csv: [place, `gc_${kind}`] }),
  [`gc.${kind}.pause`]: counter(`${what}: time of pauses.`, {
    unit: 'ms',
    merge: 'sum',
    csv: [place + 1, `gc_${kind}_ms`],
  }),
})

/** @type {Record<string, Row>} */
const PROCESS = {
  pid: field('Process id.'),
  uptime: gauge('Time since the process started.', {
    unit: 'ms',
    prometheus: 'halley_process_uptime_seconds',
  }),
  'cpu.user': gauge('CPU time in user space.', { unit: 'share', merge: 'sum', csv: [49, 'cpu_user_pct'] }),
  'cpu.system': gauge('CPU time in the kernel.', {
    unit: 'share',
    merge: 'sum',
    csv: [50, 'cpu_system_pct'],
  }),
  'loop.utilization': gauge('Share of the last second in which the event loop was active.', {
    unit: 'share',
    merge: 'max',
    csv: [35, 'loop_busy_pct'],
    prometheus: 'halley_event_loop_utilization_ratio',
  }),
  'loop.ticks': field('Event-loop delay, see [Ticks](#ticks).', { merge: 'ticks' }),
  'memory.rss': gauge('Resident memory (RSS).', {
    unit: 'bytes',
    merge: 'sum',
    csv: [39, 'rss_bytes'],
    prometheus: 'halley_process_resident_memory_bytes',
  }),
  'memory.heap_used': gauge('JS heap in use.', {
    unit: 'bytes',
    merge: 'sum',
    csv: [36, 'heap_used_bytes'],
    prometheus: 'halley_process_heap_used_bytes',
  }),
  'memory.heap_total': gauge('Committed JS heap.', {
    unit: 'bytes',
    merge: 'sum',
    csv: [37, 'heap_total_bytes'],
    prometheus: 'halley_process_heap_total_bytes',
  }),
  'memory.heap_limit': gauge('Maximum JS heap of the process.', {
    unit: 'bytes',
    prometheus: 'halley_process_heap_limit_bytes',
  }),
  'memory.external': gauge(
    'Memory outside of the heap that belongs to objects in the heap, including buffers.',
    {
      unit: 'bytes',
      merge: 'sum',
      csv: [38, 'external_bytes'],
      prometheus: 'halley_process_external_memory_bytes',
    },
  ),
  'memory.array_buffers': gauge('Buffers, which are part of the external memory.', {
    unit: 'bytes',
    merge: 'sum',
    prometheus: 'halley_process_array_buffers_bytes',
  }),
  'memory.spaces.<space>.used': gauge('JS heap in use, by space (new, old, code ...).', {
    unit: 'bytes',
    prometheus: 'halley_process_heap_space_used_bytes',
  }),
  'memory.spaces.<space>.total': gauge('Committed JS heap, by space.', {
    unit: 'bytes',
    prometheus: 'halley_process_heap_space_total_bytes',
  }),
  ...collections('minor', 'Collections of the young generation', 41),
  ...collections('major', 'Collections of the whole heap', 43),
  ...collections('incremental', 'Steps of incremental marking', 45),
  ...collections('weak', 'Runs of weak callbacks', 47),
  'files.open': gauge('Open file descriptors.', { prometheus: 'halley_process_open_files' }),
  'files.limit': gauge('Maximum open file descriptors of the process.', {
    prometheus: 'halley_process_max_files',
  }),
  'log.dropped': counter(
    'Log lines dropped because the log could not be written: a full disk, or a reader that stopped.',
    { prometheus: 'halley_log_lines_dropped_total' },
  ),
  'log.error': field('Why the log cannot be written now, or `null`.'),
}

/** @param {string} figure @param {string} what @param {number} place @param {boolean} [metric] @returns {Row} */
const delay = (figure, what, place, metric = true) =>
  gauge(`Event-loop delay of the last second: ${what}.`, {
    unit: 'ms',
    csv: [place, `tick_${figure}_ms`],
    prometheus: metric ? `halley_event_loop_delay_${figure}_seconds` : undefined,
  })

/** @type {Record<string, Row>} */
const TICKS = {
  count: gauge('Points: about 100 a second, fewer where the loop was blocked.'),
  min: delay('min', 'minimum', 29, false),
  avg: delay('avg', 'average', 30),
  p50: delay('p50', '50th percentile', 31),
  p90: delay('p90', '90th percentile', 32),
  p99: delay('p99', '99th percentile', 33),
  max: delay('max', 'maximum', 34),
  'buckets[]': field(
    'The histogram: index, count, index, count ... Bucket i below 128 holds delays of i µs. Above, each doubling has 64 buckets: with `shift = floor(i / 64) - 1` a bucket begins at `(i - shift * 64) * 2^shift` µs and is `2^shift` µs wide.',
  ),
}

/** @type {Record<string, Row>} */
const WORKER = {
  index: field('0, 1 ...'),
  state: gauge(
    '`starting`, `up` (1 as a metric, all others 0), `silent` (no sample for more than 1.5 s: its loop is blocked) or `down`.',
    { value: state => Number(state === 'up'), prometheus: 'halley_worker_up' },
  ),
  age: gauge(
    'Age of the latest sample of the worker. It grows while the event loop of the worker is blocked.',
    { unit: 'ms', prometheus: 'halley_worker_sample_age_seconds' },
  ),
  deaths: counter('Deaths of the worker since the start of the gateway, without requested restarts.', {
    csv: [6, 'worker_deaths'],
    prometheus: 'halley_worker_deaths_total',
  }),
  draining: gauge(
    'Earlier processes that let their clients go; `sample` is the sum of all processes of the worker, with the state of the newest.',
  ),
  sample: field('Its last [sample](#a-sample); `null` while it is starting or down.'),
}

/** @type {Record<string, Row>} */
const SAMPLE = {
  index: field('As that of the worker.'),
  time: field('When the sample was made.', { unit: 'ms' }),
  interval: field('Time since the previous one.', { unit: 'ms' }),
  connections: field('See [Connections](#connections).', { merge: 'sum' }),
  subscriptions: gauge('Subscriptions of the clients.', {
    merge: 'sum',
    csv: [9, 'subscriptions'],
    prometheus: 'halley_worker_subscriptions',
    total: 'centrifugo_node_num_subscriptions',
  }),
  channels: gauge('Channels with subscribers.', {
    merge: 'sum',
    csv: [10, 'channels'],
    prometheus: 'halley_worker_channels',
  }),
  windows: gauge('Batches of channels that have items and are not sent yet.', {
    merge: 'sum',
    total: 'halley_batch_windows',
  }),
  'outbox.bytes': gauge('Unsent bytes of all clients.', {
    unit: 'bytes',
    merge: 'sum',
    csv: [27, 'outbox_bytes'],
    prometheus: 'halley_worker_outbox_bytes',
  }),
  'outbox.largest': gauge('Unsent bytes of the client that has the most.', {
    unit: 'bytes',
    merge: 'max',
    csv: [28, 'outbox_largest_bytes'],
    total: 'halley_outbox_largest_bytes',
  }),
  'hooks.<hook>.inflight': gauge('Calls of hooks and event proxies under way.', {
    merge: 'sum',
    total: 'halley_hook_inflight',
  }),
  'hooks.<hook>.down': gauge('Workers for which the backend of the proxy is down: its calls fail at once.', {
    merge: 'sum',
    total: 'halley_hook_down',
  }),
  overload: gauge(
    'Why the worker refuses new connections: `event_loop` or `memory` (metric: 1; see `overload.*` in docs/config.md), or `null` (0).',
    {
      at: ['workers[].sample'],
      value: yes,
      csv: [83, 'workers_overloaded'],
      prometheus: 'halley_worker_overloaded',
    },
  ),
  accepting: gauge('1 if the worker accepts connections; 0 while too few file descriptors are free.', {
    prometheus: 'halley_worker_accepting',
  }),
  counts: field('See [Counts](#counts).', { merge: 'sum' }),
}

/** @type {Record<string, Row>} */
const CONNECTIONS = {
  open: gauge('Open connections, including clients that have not completed connect.', {
    csv: [7, 'connections'],
    prometheus: 'halley_worker_connections',
    total: 'halley_connections',
  }),
  connected: gauge('Connected clients.', {
    csv: [8, 'clients'],
    prometheus: 'halley_worker_clients',
    total: 'centrifugo_node_num_clients',
  }),
  'by.<transport>.<codec>': gauge('Connected clients, by transport and codec.', { total: 'halley_clients' }),
}

/** Counters that are a number, or numbers by name: fields of `Traffic.counts`. */
export const COUNTERS = {
  accepts: counter('Opened connections.', {
    csv: [11, 'accepts'],
    prometheus: 'halley_connections_opened_total',
  }),
  connects: counter('Clients that completed connect.', {
    csv: [13, 'connects'],
    prometheus: 'centrifugo_node_action_count',
    labels: { action: 'add_client', channel_namespace: '' },
  }),
  publishes: counter('Publications from clients and the server API.', {
    csv: [19, 'publishes'],
    prometheus: 'centrifugo_node_messages_sent_count',
    labels: { type: 'publication', channel_namespace: '' },
  }),
  deliveries: counter('Publications delivered to subscribers, counted once per subscriber.', {
    csv: [20, 'deliveries'],
    prometheus: 'halley_deliveries_total',
  }),
  'commands.<method>': counter('Commands of clients, by method.', {
    prometheus: 'halley_client_commands_total',
  }),
  'errors.<code>': counter('Error replies to clients, by code (docs/errors.md).', {
    csv: [21, 'errors'],
    prometheus: 'centrifugo_client_num_reply_errors',
    labels: { method: '', code: '', channel_namespace: '' },
  }),
  'closes.<code>': counter(
    'Closed connections, by close code of the gateway or the client (codes outside of the WebSocket protocol count as 1000); 0 for HTTP clients that disconnected.',
    { csv: [12, 'closes'], prometheus: 'halley_connections_closed_total' },
  ),
  'unsubscribes.<code>': counter('Subscriptions ended by the gateway, by code.', {
    csv: [22, 'unsubscribes'],
    prometheus: 'centrifugo_client_num_server_unsubscribes',
    labels: { code: '', channel_namespace: '' },
  }),
  'api.<method>': counter('Calls of the server API, by method.', {
    csv: [25, 'api_calls'],
    prometheus: 'halley_api_calls_total',
  }),
  'api_errors.<code>': counter('Error replies of the server API, by code.', { csv: [26, 'api_errors'] }),
  'refusals.<reason>': counter(
    'Clients turned away, by reason: an error of connect, a limit, or what they lack (docs/errors.md).',
    { prometheus: 'halley_refused_total' },
  ),
}

const FRAME = { labels: { transport: '', frame_type: '', channel_namespace: '' } }
const CLIENT = { labels: { transport: '', accept_protocol: '', client_name: '', client_version: '' } }

/** @type {Record<string, Row>} */
export const COUNTS = {
  ...COUNTERS,
  'in.messages': counter('Messages from clients: commands and pongs.', { csv: [14, 'messages_in'] }),
  'in.bytes': counter('Bytes of the messages from clients, uncompressed, without framing.', {
    unit: 'bytes',
    csv: [17, 'payload_in_bytes'],
  }),
  'out.messages': counter('Messages to clients: replies, pushes (also those that share a frame) and pings.', {
    csv: [15, 'messages_out'],
  }),
  'out.bytes': counter('Bytes of the messages to clients, uncompressed, without framing.', {
    unit: 'bytes',
    csv: [18, 'payload_out_bytes'],
  }),
  'transports.<transport>.connects': counter('Clients that completed connect, by transport.', {
    ...CLIENT,
    prometheus: 'centrifugo_client_connections_accepted',
  }),
  'transports.<transport>.in.messages': counter('Messages from clients: commands and pongs.', {
    ...FRAME,
    prometheus: 'centrifugo_transport_messages_received',
  }),
  'transports.<transport>.in.bytes': counter(
    'Bytes of the messages from clients, uncompressed, without framing.',
    { ...FRAME, unit: 'bytes', prometheus: 'centrifugo_transport_messages_received_size' },
  ),
  'transports.<transport>.out.messages': counter('Messages to clients: replies, pushes and pings.', {
    ...FRAME,
    prometheus: 'centrifugo_transport_messages_sent',
  }),
  'transports.<transport>.out.bytes': counter(
    'Bytes of the messages to clients, uncompressed, without framing.',
    { ...FRAME, unit: 'bytes', prometheus: 'centrifugo_transport_messages_sent_size' },
  ),
  'recoveries.recovered': counter('Subscriptions that recovered.', { csv: [23, 'recovered'] }),
  'recoveries.failed': counter('Subscriptions that could not recover.', { csv: [24, 'unrecovered'] }),
  'hooks.<hook>.calls': counter(
    'Ended calls of a hook or event proxy; its name is protocol, event and name, separated by spaces: `http connect default`.',
  ),
  'hooks.<hook>.time': counter('Of all these calls.', { unit: 'ms' }),
  'hooks.<hook>.within[]': counter(`Calls that took at most ${list(DURATION_BOUNDS)} ms.`),
  'hooks.<hook>.failures.<reason>': counter(
    'Failed calls of hooks and event proxies, by reason (docs/proxies.md).',
    { prometheus: 'halley_hook_failures_total' },
  ),
  'batches.items': counter('Publications, joins and leaves in all flushes of batched channels.'),
  'batches.within[]': counter(`Flushes with at most ${list(BATCH_BOUNDS)} items.`),
  'batches.flushes.<reason>': counter('Flushes of batched channels, by reason (docs/batching.md).', {
    prometheus: 'halley_batch_flushes_total',
  }),
  'batches.conflated.<namespace>': counter(
    'Publications that a newer one has replaced in a batch, counted in each worker, by namespace.',
    { prometheus: 'halley_batch_conflated_total' },
  ),
}

/** @type {Record<string, Row>} */
const TOTALS = {
  workers: gauge('Workers that are up.', { csv: [5, 'workers'] }),
  'memory.native': gauge('Resident memory without the committed JS heap.', {
    unit: 'bytes',
    csv: [40, 'native_bytes'],
  }),
  'memory.kernel': gauge(
    'Kernel memory of all connections of the gateway: sockets and the data queued in them. Only on Linux.',
    { unit: 'bytes', csv: [82, 'kernel_bytes'], prometheus: 'halley_kernel_memory_bytes' },
  ),
}

/** @type {Record<string, Row>} */
const MACHINE = {
  cores: gauge('CPU cores.', { csv: [52, 'cores'], prometheus: 'halley_machine_cores' }),
  'cpu.user': gauge('CPU time in user space, nice included.', {
    unit: 'share of all cores',
    csv: [53, 'machine_cpu_user_pct'],
  }),
  'cpu.system': gauge('CPU time in the kernel, interrupts included.', {
    unit: 'share of all cores',
    csv: [54, 'machine_cpu_system_pct'],
  }),
  'cpu.idle': gauge('Idle time.', { unit: 'share of all cores', csv: [55, 'machine_cpu_idle_pct'] }),
  'cpu.iowait': gauge('Time waiting for disks.', {
    unit: 'share of all cores',
    csv: [56, 'machine_cpu_iowait_pct'],
  }),
  'cpu.steal': gauge('Time that the host gave to other virtual machines.', {
    unit: 'share of all cores',
    csv: [57, 'machine_cpu_steal_pct'],
  }),
  'memory.total': gauge(
    'Total memory: the limit in a container or a service with a limit; the following figures are within it.',
    {
      unit: 'bytes',
      csv: [59, 'machine_memory_total_bytes'],
      prometheus: 'halley_machine_memory_total_bytes',
    },
  ),
  'memory.used': gauge('Used memory, without caches.', {
    unit: 'bytes',
    csv: [60, 'machine_memory_used_bytes'],
  }),
  'memory.free': gauge('Free memory.', { unit: 'bytes', csv: [61, 'machine_memory_free_bytes'] }),
  'memory.available': gauge('Memory available to programs without swapping.', {
    unit: 'bytes',
    csv: [62, 'machine_memory_available_bytes'],
    prometheus: 'halley_machine_memory_available_bytes',
  }),
  'memory.caches': gauge('Page cache, buffers and reclaimable slab.', {
    unit: 'bytes',
    csv: [63, 'machine_memory_caches_bytes'],
  }),
  'memory.slab': gauge('Kernel slab memory of the whole machine.', {
    unit: 'bytes',
    csv: [64, 'slab_bytes'],
    prometheus: 'halley_machine_slab_bytes',
  }),
  'load[]': gauge('Load average over 1, 5 and 15 minutes.'),
  'sockets.used': gauge('Sockets in use.', { csv: [65, 'sockets'], prometheus: 'halley_machine_sockets' }),
  'sockets.tcp.inuse': gauge('TCP sockets in use.', {
    csv: [66, 'tcp_sockets'],
    prometheus: 'halley_machine_tcp_sockets',
  }),
  'sockets.tcp.orphan': gauge('TCP sockets without a process.', {
    csv: [67, 'tcp_orphans'],
    prometheus: 'halley_machine_tcp_orphans',
  }),
  'sockets.tcp.time_wait': gauge('TCP sockets in TIME_WAIT.', {
    csv: [68, 'tcp_time_wait'],
    prometheus: 'halley_machine_tcp_time_wait',
  }),
  'sockets.tcp.alloc': gauge('Allocated TCP sockets, in all states.', {
    prometheus: 'halley_machine_tcp_allocated',
  }),
  'sockets.tcp.memory': gauge('Buffers of all TCP sockets of the machine.', {
    unit: 'bytes',
    csv: [69, 'tcp_memory_bytes'],
    prometheus: 'halley_machine_tcp_memory_bytes',
  }),
  'network.rx_bytes': gauge(
    'Bytes received per second, on all interfaces with a device of their own, so that a packet across a bridge counts once; in a container, on all but loopback. Loopback counts if only it has traffic.',
    { unit: 'bytes', csv: [70, 'net_rx_bytes_s'] },
  ),
  'network.tx_bytes': gauge('Bytes sent per second, counted the same way.', {
    unit: 'bytes',
    csv: [71, 'net_tx_bytes_s'],
  }),
  'network.rx_packets': gauge('Packets received per second.', { csv: [72, 'net_rx_packets_s'] }),
  'network.tx_packets': gauge('Packets sent per second.', { csv: [73, 'net_tx_packets_s'] }),
  'network.interfaces.<name>.rx_bytes': gauge('Of each interface that was ever used, at most 32.', {
    unit: 'bytes',
  }),
  'network.interfaces.<name>.tx_bytes': gauge('', { unit: 'bytes' }),
  'network.interfaces.<name>.rx_packets': gauge(''),
  'network.interfaces.<name>.tx_packets': gauge(''),
  'listen.overflows': counter(
    'Connections that overflowed a listen queue of the machine (or network namespace). Clients wait a second and try again.',
    { csv: [74, 'listen_overflows'] },
  ),
  'listen.drops': counter('Connections dropped by listening sockets for any reason, with overflows.', {
    csv: [75, 'listen_drops'],
  }),
  'files.open': gauge('Open files of all processes.', {
    csv: [76, 'files_open'],
    prometheus: 'halley_machine_open_files',
  }),
  'files.limit': gauge('Maximum open files of all processes.', {
    csv: [77, 'files_limit'],
    prometheus: 'halley_machine_max_files',
  }),
}

/** The primary has no clients. */
const OF_WORKERS = { at: ['lifetimes.workers[]'] }

/** @type {Record<string, Row>} */
const LIFETIMES = {
  'cpu.<mode>': counter('CPU time, by mode (user, system).', {
    unit: 'ms',
    prometheus: 'halley_process_cpu_seconds_total',
  }),
  active: counter('Active time of the event loop; its rate is the utilization.', {
    unit: 'ms',
    prometheus: 'halley_event_loop_active_seconds_total',
  }),
  'ticks.count': counter('Points of event-loop delay.'),
  'ticks.sum': counter('Their sum.', { unit: 'ms' }),
  'ticks.within[]': counter(`How many were no longer than ${list(TICK_BOUNDS)} ms.`),
  'gc.<kind>.count': counter('Garbage collections, by kind (minor, major, incremental, weak).', {
    prometheus: 'halley_gc_runs_total',
  }),
  'gc.<kind>.pause': counter('Time in which garbage collection paused the process, by kind.', {
    unit: 'ms',
    prometheus: 'halley_gc_pause_seconds_total',
  }),
  'in.messages': counter('Messages from clients: commands and pongs.', {
    ...OF_WORKERS,
    prometheus: 'halley_worker_messages_received_total',
  }),
  'in.bytes': counter('Bytes of the messages from clients, uncompressed, without framing.', {
    ...OF_WORKERS,
    unit: 'bytes',
    prometheus: 'halley_worker_received_bytes_total',
  }),
  'out.messages': counter('Messages to clients: replies, pushes and pings.', {
    ...OF_WORKERS,
    prometheus: 'halley_worker_messages_sent_total',
  }),
  'out.bytes': counter('Bytes of the messages to clients, uncompressed, without framing.', {
    ...OF_WORKERS,
    unit: 'bytes',
    prometheus: 'halley_worker_sent_bytes_total',
  }),
}

/** @type {Record<string, Row>} */
const MACHINE_LIFETIMES = {
  'cpu.<mode>': counter(
    'CPU time of all cores since the gateway started, by mode (user, system, idle, iowait, steal).',
    { unit: 'ms', prometheus: 'halley_machine_cpu_seconds_total' },
  ),
  'network.rx_bytes': counter(
    'Bytes received since the gateway started, without the loopback interface (unless it is the only one).',
    { unit: 'bytes', prometheus: 'halley_machine_network_received_bytes_total' },
  ),
  'network.tx_bytes': counter('Bytes sent, counted the same way.', {
    unit: 'bytes',
    prometheus: 'halley_machine_network_sent_bytes_total',
  }),
  'network.rx_packets': counter('Packets received, counted the same way.', {
    prometheus: 'halley_machine_network_received_packets_total',
  }),
  'network.tx_packets': counter('Packets sent, counted the same way.', {
    prometheus: 'halley_machine_network_sent_packets_total',
  }),
  'listen.overflows': counter('Connections that overflowed a listen queue since the gateway started.', {
    prometheus: 'halley_machine_listen_overflows_total',
  }),
  'listen.drops': counter(
    'Connections dropped by listening sockets for any reason since the gateway started.',
    { prometheus: 'halley_machine_listen_drops_total' },
  ),
}

/**
 * @typedef {object} Section of docs/stats.md
 * @property {string} title
 * @property {string[]} at where its fields are in a snapshot
 * @property {string} [total] where their merged values are
 * @property {string[]} [since] where Prometheus metrics are read, if not at `at`
 * @property {'node' | 'workers' | 'processes' | 'machine'} group of Prometheus metrics
 * @property {Record<string, Row>} rows by path
 */

const PROCESSES = ['primary', 'workers[].sample']

/** @type {readonly Section[]} */
export const SECTIONS = [
  { title: 'A snapshot', at: [''], group: 'node', rows: SNAPSHOT },
  { title: 'A process', at: PROCESSES, total: 'totals', group: 'processes', rows: PROCESS },
  {
    title: 'Ticks',
    at: PROCESSES.map(path => `${path}.loop.ticks`),
    total: 'totals.loop.ticks',
    group: 'processes',
    rows: TICKS,
  },
  { title: 'A worker', at: ['workers[]'], group: 'workers', rows: WORKER },
  { title: 'A sample', at: ['workers[].sample'], total: 'totals', group: 'workers', rows: SAMPLE },
  {
    title: 'Connections',
    at: ['workers[].sample.connections'],
    total: 'totals.connections',
    group: 'workers',
    rows: CONNECTIONS,
  },
  {
    title: 'Counts',
    at: ['workers[].sample.counts'],
    total: 'totals.counts',
    since: ['counters'],
    group: 'node',
    rows: COUNTS,
  },
  { title: 'Totals', at: ['totals'], group: 'node', rows: TOTALS },
  { title: 'The machine', at: ['machine'], group: 'machine', rows: MACHINE },
  {
    title: 'Lifetimes',
    at: ['lifetimes.primary', 'lifetimes.workers[]'],
    group: 'processes',
    rows: LIFETIMES,
  },
  {
    title: 'Lifetimes of the machine',
    at: ['lifetimes.machine'],
    group: 'machine',
    rows: MACHINE_LIFETIMES,
  },
]

/** @param {string} path @returns {string[]} its steps; `[]` and `<name>` are one each */
export const stepsOf = path =>
  path
    .replaceAll('[]', '.[]')
    .split('.')
    .filter(step => step !== '')

/**
 * @param {any} value @param {string[]} steps below it @param {(string | number)[]} [labels] of the value
 * @returns {[value: any, ...labels: (string | number)[]][]} all values at a path, with the names in it: of array items
 *   `name` or the index, of hooks protocol, event and name. Nothing where a part is `null`
 */
export function valuesAt(value, [step, ...below], labels = []) {
  if (step === undefined) return value === undefined ? [] : [[value, ...labels]]
  if (value === null || value === undefined) return []
  if (step === '[]')
    return value.flatMap((/** @type {any} */ item, /** @type {number} */ index) =>
      valuesAt(item, below, [...labels, item.name ?? index]),
    )
  if (!step.startsWith('<')) return valuesAt(value[step], below, labels)
  const names = (/** @type {string} */ name) => (step === '<hook>' ? name.split(' ') : [name])
  return Object.entries(value).flatMap(([name, inner]) => valuesAt(inner, below, [...labels, ...names(name)]))
}

/** Kinds of events and their meaning. */
export const EVENTS = {
  started: 'All workers listen.',
  worker_started: 'A worker listens.',
  worker_died: 'A worker ended, with the reason; `info` if it was requested. It is replaced.',
  worker_draining:
    'A worker is being replaced: the new process listens, and the clients of the old one leave it.',
  worker_silent: '`warn`: the event loop of a worker is blocked. `info`: it sends samples again.',
  reloaded: 'The configuration was reloaded.',
  slow_clients: 'Clients were disconnected with 3008: they read too slowly.',
  overload: '`warn`: a worker refuses new connections, with the reason. `info`: it accepts them again.',
  redis_lost: 'A worker lost its connection to Redis.',
  redis_back: 'All workers are connected to Redis again.',
  gc: 'A garbage collection was requested.',
  listen_overflow: 'Connections overflowed a listen queue.',
  csv: 'The CSV file cannot be written.',
  log: '`error`: the log cannot be written. `info`: it can again.',
  proxy: '`error`: the backend of an event proxy is down, calls fail at once. `info`: it answers again.',
  driver: '`warn`: uWebSockets.js does not load, with the cure; the workers use the socket server `node`.',
  files: '`error`: a worker accepts no connections, for lack of descriptors. `info`: it does again.',
  stopping: 'The gateway shuts down.',
}
