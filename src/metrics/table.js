// The table of metrics: one row per field of a snapshot. Totals, history, CSV file, Prometheus metrics, labels of
// the terminal dashboard and tables of docs/ derive from it. The admin page loads this file.
//
// Paths as in docs/stats.md: `[]` is each item of an array, `<name>` each value of an object by name; `<a b>` by two
// names, separated by a space.

import { count } from '../base/format.js'

/** @typedef {'ms' | 'bytes' | 'share' | 'share of all cores'} Unit share: from 0 to 1 */

/**
 * @typedef {object} Options
 * @property {Unit} [unit] none: a count
 * @property {'sum' | 'max' | 'ticks'} [merge] of processes; none: not in the totals; of a worker, the newest
 * @property {[place: number, name: string]} [csv] column; places do not change, new columns get the next one
 * @property {string} [prometheus] metric, of each process if the section has several
 * @property {string} [total] metric of the merged value
 * @property {Record<string, string>} [labels] with default values, in order; default: the names in the path
 * @property {(value: any) => number} [value] of the column and the metrics of a non-numeric field
 * @property {string} [label] in the terminal dashboard; default: the last step of the path
 * @property {string[]} [at] of the column and the metrics, if not the whole section
 *
 * @typedef {Options & {help: string, type: 'gauge' | 'counter' | 'field'}} Row field: no metric
 */

/** @param {string} help @param {Options} [options] @returns {Row} */
const gauge = (help, options) => ({ type: 'gauge', help, ...options })
/** @param {string} help @param {Options} [options] @returns {Row} */
const counter = (help, options) => ({ type: 'counter', help, ...options })
const bytes = (/** @type {string} */ help, /** @type {Options} */ options = {}) =>
  gauge(help, { unit: 'bytes', ...options })
const bytesCounter = (/** @type {string} */ help, /** @type {Options} */ options = {}) =>
  counter(help, { unit: 'bytes', ...options })
const time = (/** @type {string} */ help, /** @type {Options} */ options = {}) =>
  gauge(help, { unit: 'ms', ...options })
const timeCounter = (/** @type {string} */ help, /** @type {Options} */ options = {}) =>
  counter(help, { unit: 'ms', ...options })
/** @param {string} help @param {Options} [options] @returns {Row} */
const field = (help, options) => ({ type: 'field', help, ...options })

const yes = (/** @type {unknown} */ value) => Number(value !== null)

/** Upper bounds, ms. */
export const TICK_BOUNDS = Object.freeze([1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000])
/** Upper bounds, ms: Centrifugo's, and two for in-process modules. */
export const DURATION_BOUNDS = Object.freeze([0.1, 1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000])
export const BATCH_BOUNDS = Object.freeze([1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000])
export const GC_KINDS = /** @type {const} */ (['minor', 'major', 'incremental', 'weak'])

/** @param {readonly number[]} bounds */
const list = bounds =>
  bounds
    .map(count)
    .join(', ')
    .replace(/, ([^ ]+)$/, ' and $1')

/** @type {Record<string, Row>} */
const SNAPSHOT = {
  version: field('Version of the schema.'),
  seq: gauge('Number of the snapshot since the start of the gateway, from 1.', { csv: [1, 'seq'] }),
  time: time('Unix time of the snapshot.', { csv: [0, 'time'], prometheus: 'halley_snapshot_time_seconds' }),
  interval: time('Time since the previous snapshot; counts cover this time.', { csv: [3, 'interval_ms'] }),
  collect: time(
    "Time from the full second until the snapshot is complete; includes about 150 ms of waiting for the workers' samples.",
    { csv: [4, 'collect_ms'] },
  ),
  'node.id': field('New after each start.'),
  'node.name': field('`node.name` of the configuration; host name and port by default.'),
  'node.version': field('Version of Halley.'),
  'node.url': field('URL for clients.'),
  'node.pid': field('Process id of the primary.'),
  'node.started_at': time('Unix time of the start of the gateway.', {
    prometheus: 'halley_start_time_seconds',
  }),
  'node.engine': field('`memory` or `redis`.'),
  'node.driver': field('`uws` or `node`.'),
  'node.driver_fallback': field(
    'Reason and fix if the driver is `node` although `uws` is configured; else empty.',
  ),
  'node.node_version': field('Version of Node.js.'),
  'node.workers': gauge('Configured workers.', { prometheus: 'halley_workers' }),
  primary: field('The primary process, see [A process](#a-process).'),
  'workers[]': field('By index, see [A worker](#a-worker).'),
  totals: field('All workers together, see [Totals](#totals).'),
  counters: field(
    'Counts since the start of the gateway, see [Counts](#counts). They never decrease, even when a worker exits.',
  ),
  lifetimes: field('Other sums since the start, see [Lifetimes](#lifetimes).'),
  machine: field('See [The machine](#the-machine).'),
  'capacity.bytes_per_connection': bytes(
    'User-space memory per connection, without that of the idle gateway. Absent below 1,000 connections.',
    { label: 'user space', csv: [78, 'bytes_per_connection'], prometheus: 'halley_connection_memory_bytes' },
  ),
  'capacity.kernel_per_connection': bytes(
    'Kernel memory per connection: the socket and the data queued in it. Absent below 1,000 connections.',
    {
      label: 'kernel',
      csv: [79, 'kernel_bytes_per_connection'],
      prometheus: 'halley_connection_kernel_memory_bytes',
    },
  ),
  'capacity.fits': gauge('Estimated number of additional connections that fit.', { csv: [80, 'fits'] }),
  'capacity.bound': field(
    'The limit reached first: `memory` (with a tenth kept free), `files` (descriptors of all workers) or `connection_limit` (`client.connection_limit`).',
  ),
  'events[].time': field('Time of an event since the previous snapshot.'),
  'events[].level': field('`info`, `warn` or `error`.'),
  'events[].kind': field('See [Events](#events).'),
  'events[].text': field('Human-readable text.'),
  'events[].worker': field('Index of the worker concerned, or `null`.'),
  'csv.file': field('The CSV file; `csv` is `null` without one.'),
  'csv.bytes': bytes('Size of the CSV file.', { prometheus: 'halley_csv_bytes' }),
  'csv.max_bytes': bytes('Size at which the CSV file is rotated.', { prometheus: 'halley_csv_max_bytes' }),
  'csv.rotations': counter('Rotations of the CSV file.', { prometheus: 'halley_csv_rotations_total' }),
  'csv.error': gauge('Why the CSV file cannot be written (metric: 1), or `null` (0).', {
    value: yes,
    prometheus: 'halley_csv_failed',
  }),
  'lifecycle.journal.clients': gauge('Clients in the journal of the primary.', {
    prometheus: 'halley_lifecycle_journal_clients',
  }),
  'lifecycle.journal.bytes': bytes('Estimated memory of the journal.', {
    prometheus: 'halley_lifecycle_journal_bytes',
  }),
  'lifecycle.journal.refused': counter(
    'Clients and subscriptions not recorded because the journal was full.',
    {
      prometheus: 'halley_lifecycle_journal_refused_total',
    },
  ),
  'lifecycle.worker_dropped': counter(
    'Events that workers have dropped because the primary did not read them.',
    { prometheus: 'halley_lifecycle_worker_dropped_total' },
  ),
  'lifecycle.taken_over': counter('Disconnects of dead nodes that this node has logged.', {
    prometheus: 'halley_lifecycle_taken_over_total',
  }),
  'lifecycle.sinks.<sink>.written': counter('Records accepted by a sink of the lifecycle log.', {
    prometheus: 'halley_lifecycle_records_total',
  }),
  'lifecycle.sinks.<sink>.dropped.<reason>': counter(
    'Records lost by a sink of the lifecycle log, by reason (docs/lifecycle.md).',
    { prometheus: 'halley_lifecycle_dropped_total' },
  ),
  'lifecycle.sinks.<sink>.queue_bytes': bytes('Memory of the queued records of a sink.', {
    prometheus: 'halley_lifecycle_queue_bytes',
  }),
  'lifecycle.sinks.<sink>.failing': gauge('1 while a sink of the lifecycle log accepts no records.', {
    prometheus: 'halley_lifecycle_failing',
  }),
  'consumers.list[].name': field(
    'Name of a consumer; `consumers` is `null` without [consumers](consumers.md).',
  ),
  'consumers.list[].type': field('Type of the consumer.'),
  'consumers.list[].processed': counter('Processed messages of a consumer, including skipped ones.', {
    csv: [84, 'consumers_processed_total'],
    prometheus: 'centrifugo_consumers_messages_processed_total',
  }),
  'consumers.list[].skipped.<reason>': counter(
    'Invalid messages, which are not retried, by reason (docs/consumers.md).',
    { csv: [85, 'consumers_skipped_total'], prometheus: 'halley_consumers_skipped_total' },
  ),
  'consumers.list[].errors': counter('Failed attempts to process messages, and errors of the source.', {
    csv: [86, 'consumers_errors_total'],
    prometheus: 'centrifugo_consumers_errors_total',
  }),
  'consumers.list[].retries': counter('Failed attempts to process messages that are retried.', {
    prometheus: 'halley_consumers_retries_total',
  }),
  'consumers.list[].age': time('Age of the oldest pending message.', {
    merge: 'max',
    csv: [88, 'consumers_age_ms'],
    prometheus: 'halley_consumers_age_seconds',
  }),
  'consumers.list[].backoff': time('Delay before the next retry.', {
    label: 'back-off',
    prometheus: 'halley_consumers_backoff_seconds',
  }),
  'consumers.list[].lag': gauge('Messages waiting at the source, if it reports them.', {
    csv: [87, 'consumers_lag'],
    prometheus: 'halley_consumers_lag_messages',
  }),
  'consumers.api_errors.<code>': counter('Errors of the calls of the server API by consumers.'),
  'republishers[].name': field(
    'Name of a republisher; `republishers` is `null` without [republishing](republish.md).',
  ),
  'republishers[].sent': counter('Messages sent by a republisher, including retries.', {
    prometheus: 'halley_republish_sent_total',
  }),
  'republishers[].confirmed': counter('Messages confirmed by the queue.'),
  'republishers[].returned': counter('Messages that the destination returned as unroutable.'),
  'republishers[].refused': counter('Messages refused by the destination.'),
  'republishers[].dropped': counter('Messages dropped because the queue of the republisher was full.'),
  'republishers[].unreached': counter(
    'Publications dropped because the queue process was down for too long, or did not read.',
  ),
  'republishers[].abandoned': counter(
    'Publications in the memory of queue processes that exited (upper bound).',
  ),
  'republishers[].queued': gauge('Messages without an outcome.', {
    label: 'queue',
    prometheus: 'halley_republish_queue_messages',
  }),
  'republishers[].queued_bytes': bytes('Approximate memory of these messages.', {
    label: 'bytes',
    prometheus: 'halley_republish_queue_bytes',
  }),
  'republishers[].age': time('Age of the oldest of these messages.', {
    prometheus: 'halley_republish_age_seconds',
  }),
  'republishers[].up': gauge('1 while a republisher is connected.', {
    label: 'state',
    prometheus: 'halley_republish_up',
  }),
}

/** @param {typeof GC_KINDS[number]} kind @param {string} what @param {number} place @returns {Record<string, Row>} */
const collections = (kind, what, place) => ({
  [`gc.${kind}.count`]: counter(`${what}.`, { merge: 'sum', csv: [place, `gc_${kind}`] }),
  [`gc.${kind}.pause`]: timeCounter(`${what}: time of pauses.`, {
    merge: 'sum',
    csv: [place + 1, `gc_${kind}_ms`],
  }),
})

/** @type {Record<string, Row>} */
const PROCESS = {
  pid: field('Process id.'),
  uptime: time('Time since the process started.', {
    label: 'up',
    prometheus: 'halley_process_uptime_seconds',
  }),
  'cpu.user': gauge('CPU time in user space.', { unit: 'share', merge: 'sum', csv: [49, 'cpu_user_pct'] }),
  'cpu.system': gauge('CPU time in the kernel.', {
    unit: 'share',
    merge: 'sum',
    csv: [50, 'cpu_system_pct'],
  }),
  'loop.utilization': gauge('Share of the last second in which the event loop was active.', {
    label: 'loop',
    unit: 'share',
    merge: 'max',
    csv: [35, 'loop_busy_pct'],
    prometheus: 'halley_event_loop_utilization_ratio',
  }),
  'loop.ticks': field('Event-loop delay, see [Ticks](#ticks).', { merge: 'ticks' }),
  'memory.rss': bytes('Resident memory (RSS).', {
    merge: 'sum',
    csv: [39, 'rss_bytes'],
    prometheus: 'halley_process_resident_memory_bytes',
  }),
  'memory.heap_used': bytes('JS heap in use.', {
    label: 'used',
    merge: 'sum',
    csv: [36, 'heap_used_bytes'],
    prometheus: 'halley_process_heap_used_bytes',
  }),
  'memory.heap_total': bytes('Committed JS heap.', {
    label: 'total',
    merge: 'sum',
    csv: [37, 'heap_total_bytes'],
    prometheus: 'halley_process_heap_total_bytes',
  }),
  'memory.heap_limit': bytes('Maximum JS heap of the process.', {
    label: 'limit',
    prometheus: 'halley_process_heap_limit_bytes',
  }),
  'memory.external': bytes('Memory outside the heap that belongs to heap objects, including buffers.', {
    merge: 'sum',
    csv: [38, 'external_bytes'],
    prometheus: 'halley_process_external_memory_bytes',
  }),
  'memory.array_buffers': bytes('Buffers, which are part of the external memory.', {
    merge: 'sum',
    prometheus: 'halley_process_array_buffers_bytes',
  }),
  'memory.spaces.<space>.used': bytes('JS heap in use, by space (new, old, code ...).', {
    prometheus: 'halley_process_heap_space_used_bytes',
  }),
  'memory.spaces.<space>.total': bytes('Committed JS heap, by space.', {
    prometheus: 'halley_process_heap_space_total_bytes',
  }),
  ...collections('minor', 'Collections of the young generation', 41),
  ...collections('major', 'Collections of the whole heap', 43),
  ...collections('incremental', 'Steps of incremental marking', 45),
  ...collections('weak', 'Runs of weak callbacks', 47),
  'files.open': gauge('Open file descriptors.', { label: 'files', prometheus: 'halley_process_open_files' }),
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
  time(`Event-loop delay of the last second: ${what}.`, {
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
  age: time(
    'Age of the latest sample of the worker. It grows while the event loop of the worker is blocked.',
    { prometheus: 'halley_worker_sample_age_seconds' },
  ),
  deaths: counter('Exits of the worker since the start of the gateway, except requested restarts.', {
    label: 'died',
    csv: [6, 'worker_deaths'],
    prometheus: 'halley_worker_deaths_total',
  }),
  draining: gauge(
    'Replaced processes that still disconnect their clients; `sample` is the sum of all processes of the worker, with the state of the newest.',
  ),
  sample: field('The last [sample](#a-sample) of the worker; `null` while it is starting or down.'),
}

/** @type {Record<string, Row>} */
const SAMPLE = {
  index: field('Index of the worker.'),
  time: field('Time of the sample.', { unit: 'ms' }),
  interval: field('Time since the previous sample.', { unit: 'ms' }),
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
  'outbox.bytes': bytes('Unsent bytes of all clients.', {
    label: 'outbox',
    merge: 'sum',
    csv: [27, 'outbox_bytes'],
    prometheus: 'halley_worker_outbox_bytes',
  }),
  'outbox.largest': bytes('Most unsent bytes of one client.', {
    merge: 'max',
    csv: [28, 'outbox_largest_bytes'],
    total: 'halley_outbox_largest_bytes',
  }),
  'hooks.<hook>.inflight': gauge('Pending calls of hooks and event proxies.', {
    merge: 'sum',
    total: 'halley_hook_inflight',
  }),
  'hooks.<hook>.down': gauge(
    'Workers for which the backend of the proxy is down: its calls fail immediately.',
    {
      merge: 'sum',
      total: 'halley_hook_down',
    },
  ),
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
    label: 'clients',
    csv: [8, 'clients'],
    prometheus: 'halley_worker_clients',
    total: 'centrifugo_node_num_clients',
  }),
  'by.<transport>.<codec>': gauge('Connected clients, by transport and codec.', { total: 'halley_clients' }),
}

/** Fields of `Traffic.counts`: a number, or numbers by name. */
export const COUNTERS = {
  accepts: counter('Opened connections.', {
    label: 'new',
    csv: [11, 'accepts'],
    prometheus: 'halley_connections_opened_total',
  }),
  connects: counter('Clients that completed connect.', {
    csv: [13, 'connects'],
    prometheus: 'centrifugo_node_action_count',
    labels: { action: 'add_client', channel_namespace: '' },
  }),
  publishes: counter('Publications from clients and the server API.', {
    label: 'publications',
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
    'Refused clients, by reason: a connect error, a limit, or missing credentials (docs/errors.md).',
    { prometheus: 'halley_refused_total' },
  ),
  'rate_limited.<block command>': counter(
    'Commands and errors over a limit of `client.rate_limit`, by its place, such as `client_command publish` (docs/access.md).',
    { csv: [98, 'rate_limited'], prometheus: 'halley_rate_limited_total' },
  ),
  'requests.<outcome>': counter(
    'Requests to clients, by outcome: `complete`, `timeout` (some clients did not answer) or `failed`, with nothing sent (docs/access.md).',
    { prometheus: 'halley_client_requests_total' },
  ),
  'acks.<outcome>': counter(
    'Answers of clients to requests, by outcome: `accepted`, `unexpected` (late, repeated, or of another client) or `invalid`.',
    { prometheus: 'halley_client_acks_total' },
  ),
  rate_unchecked: counter('Commands that were not checked in Redis, which did not answer in time.', {
    prometheus: 'halley_rate_unchecked_total',
  }),
  user_status_dropped: counter(
    'Updates of the time a user was last online that the store did not accept (docs/access.md).',
    { prometheus: 'halley_user_status_dropped_total' },
  ),
  'channel_events.<type>': counter(
    'Events that the backend has accepted, `occupied` and `vacated` (docs/access.md).',
    { prometheus: 'halley_channel_events_total' },
  ),
  channel_event_failures: counter('Failed reports of these events, which are repeated.', {
    prometheus: 'halley_channel_event_failures_total',
  }),
  channel_events_dropped: counter('Events `occupied` for which there was no room.', {
    prometheus: 'halley_channel_events_dropped_total',
  }),
}

const FRAME = { labels: { transport: '', frame_type: '', channel_namespace: '' } }
const CLIENT = { labels: { transport: '', accept_protocol: '', client_name: '', client_version: '' } }

/** @type {Record<string, Row>} */
export const COUNTS = {
  ...COUNTERS,
  'in.messages': counter('Messages from clients: commands and pongs.', {
    label: 'in',
    csv: [14, 'messages_in'],
  }),
  'in.bytes': bytesCounter('Bytes of the messages from clients, uncompressed, without framing.', {
    csv: [17, 'payload_in_bytes'],
  }),
  'out.messages': counter('Messages to clients: replies, pushes (also those that share a frame) and pings.', {
    label: 'out',
    csv: [15, 'messages_out'],
  }),
  'out.bytes': bytesCounter('Bytes of the messages to clients, uncompressed, without framing.', {
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
  'transports.<transport>.in.bytes': bytesCounter(
    'Bytes of the messages from clients, uncompressed, without framing.',
    { ...FRAME, prometheus: 'centrifugo_transport_messages_received_size' },
  ),
  'transports.<transport>.out.messages': counter('Messages to clients: replies, pushes and pings.', {
    ...FRAME,
    prometheus: 'centrifugo_transport_messages_sent',
  }),
  'transports.<transport>.out.bytes': bytesCounter(
    'Bytes of the messages to clients, uncompressed, without framing.',
    { ...FRAME, prometheus: 'centrifugo_transport_messages_sent_size' },
  ),
  'recoveries.recovered': counter('Subscriptions that recovered.', { csv: [23, 'recovered'] }),
  'recoveries.failed': counter('Subscriptions that could not recover.', { csv: [24, 'unrecovered'] }),
  'maps.publishes': counter('Accepted publishes to maps; suppressed ones are not counted (docs/maps.md).', {
    csv: [90, 'map_publishes'],
    prometheus: 'halley_map_publishes_total',
  }),
  'maps.removals': counter(
    'Removed keys of maps, by requests and with their clients or workers; not the keys of cleared maps.',
    { csv: [91, 'map_removals'], prometheus: 'halley_map_removals_total' },
  ),
  'polls.calls': counter(
    'Calls of the backend for shared polls; their durations are those of the event shared_poll_refresh (docs/proxies.md).',
    { csv: [94, 'poll_calls'], prometheus: 'halley_shared_poll_calls_total' },
  ),
  'polls.keys': counter('Keys in these calls.', {
    csv: [95, 'poll_keys_asked'],
    prometheus: 'halley_shared_poll_keys_asked_total',
  }),
  'polls.failures': counter('Calls that failed: their keys wait for the next interval.', {
    csv: [96, 'poll_failures'],
    prometheus: 'halley_shared_poll_failures_total',
  }),
  'polls.updates': counter('Values and removals from the backend that were sent to workers.', {
    csv: [97, 'poll_updates'],
    prometheus: 'halley_shared_poll_updates_total',
  }),
  'maps.expiries': counter('Expired keys of maps; with Redis, those that this node has removed.', {
    csv: [92, 'map_expiries'],
    prometheus: 'halley_map_expiries_total',
  }),
  'hooks.<hook>.calls': counter(
    'Ended calls of a hook or event proxy; its name is protocol, event and name, separated by spaces: `http connect default`.',
  ),
  'hooks.<hook>.time': timeCounter('Total time of these calls.'),
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
    'Publications replaced by a newer one in a batch, counted in each worker, by namespace.',
    { prometheus: 'halley_batch_conflated_total' },
  ),
}

/** @type {Record<string, Row>} */
const TOTALS = {
  workers: gauge('Workers that are up.', { csv: [5, 'workers'] }),
  'memory.native': bytes('Resident memory without the committed JS heap.', { csv: [40, 'native_bytes'] }),
  'memory.kernel': bytes(
    'Kernel memory of all connections of the gateway: sockets and the data queued in them. Only on Linux.',
    { csv: [82, 'kernel_bytes'], prometheus: 'halley_kernel_memory_bytes' },
  ),
  'polls.keys': gauge('Keys that clients of this node track in shared polls.', {
    csv: [93, 'poll_keys'],
    prometheus: 'halley_shared_poll_keys',
  }),
  'denylist.<kind>': gauge(
    'Blocked users (`user_block`), revoked tokens (`token_revoke`) and users with invalid tokens (`user_tokens_invalidate`) that this node refuses (docs/access.md).',
    { prometheus: 'halley_denylist_entries' },
  ),
  'maps.keys': gauge('Keys of all maps. Unknown with Redis, where all nodes share them.', {
    csv: [89, 'map_keys'],
    prometheus: 'halley_map_keys',
  }),
}

/** @type {Record<string, Row>} */
const MACHINE = {
  cores: gauge('CPU cores.', { csv: [52, 'cores'], prometheus: 'halley_machine_cores' }),
  'cpu.user': gauge('CPU time in user space, nice included.', {
    unit: 'share of all cores',
    csv: [53, 'machine_cpu_user_pct'],
  }),
  'cpu.system': gauge('CPU time in the kernel, interrupts included.', {
    label: 'sys',
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
  'memory.total': bytes(
    'Total memory, or the memory limit of the container or service; the following figures are within it.',
    { csv: [59, 'machine_memory_total_bytes'], prometheus: 'halley_machine_memory_total_bytes' },
  ),
  'memory.used': bytes('Used memory, without caches.', { csv: [60, 'machine_memory_used_bytes'] }),
  'memory.free': bytes('Free memory.', { csv: [61, 'machine_memory_free_bytes'] }),
  'memory.available': bytes('Memory available to programs without swapping.', {
    csv: [62, 'machine_memory_available_bytes'],
    prometheus: 'halley_machine_memory_available_bytes',
  }),
  'memory.caches': bytes('Page cache, buffers and reclaimable slab.', {
    csv: [63, 'machine_memory_caches_bytes'],
  }),
  'memory.slab': bytes('Kernel slab memory of the whole machine.', {
    csv: [64, 'slab_bytes'],
    prometheus: 'halley_machine_slab_bytes',
  }),
  'load[]': gauge('Load average over 1, 5 and 15 minutes.'),
  'sockets.used': gauge('Sockets in use.', {
    label: 'sockets',
    csv: [65, 'sockets'],
    prometheus: 'halley_machine_sockets',
  }),
  'sockets.tcp.inuse': gauge('TCP sockets in use.', {
    csv: [66, 'tcp_sockets'],
    prometheus: 'halley_machine_tcp_sockets',
  }),
  'sockets.tcp.orphan': gauge('TCP sockets without a process.', {
    csv: [67, 'tcp_orphans'],
    prometheus: 'halley_machine_tcp_orphans',
  }),
  'sockets.tcp.time_wait': gauge('TCP sockets in TIME_WAIT.', {
    label: 'time-wait',
    csv: [68, 'tcp_time_wait'],
    prometheus: 'halley_machine_tcp_time_wait',
  }),
  'sockets.tcp.alloc': gauge('Allocated TCP sockets, in all states.', {
    prometheus: 'halley_machine_tcp_allocated',
  }),
  'sockets.tcp.memory': bytes('Buffers of all TCP sockets of the machine.', {
    label: 'tcp',
    csv: [69, 'tcp_memory_bytes'],
    prometheus: 'halley_machine_tcp_memory_bytes',
  }),
  'network.rx_bytes': bytes(
    'Bytes received per second on physical interfaces (a packet across a bridge counts once); in a container, on all interfaces except loopback. Loopback counts if no other interface has traffic.',
    { label: 'in', csv: [70, 'net_rx_bytes_s'] },
  ),
  'network.tx_bytes': bytes('Bytes sent per second, counted the same way.', {
    label: 'out',
    csv: [71, 'net_tx_bytes_s'],
  }),
  'network.rx_packets': gauge('Packets received per second.', {
    label: 'packets',
    csv: [72, 'net_rx_packets_s'],
  }),
  'network.tx_packets': gauge('Packets sent per second.', { csv: [73, 'net_tx_packets_s'] }),
  'network.interfaces.<name>.rx_bytes': bytes('The same per interface that had traffic, at most 32.'),
  'network.interfaces.<name>.tx_bytes': bytes(''),
  'network.interfaces.<name>.rx_packets': gauge(''),
  'network.interfaces.<name>.tx_packets': gauge(''),
  'listen.overflows': counter(
    'Connections that overflowed a listen queue of the machine (or network namespace). Clients wait a second and try again.',
    { csv: [74, 'listen_overflows'] },
  ),
  'listen.drops': counter('Connections dropped by listening sockets for any reason, including overflows.', {
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
  'cpu.<mode>': timeCounter('CPU time, by mode (user, system).', {
    prometheus: 'halley_process_cpu_seconds_total',
  }),
  active: timeCounter('Active time of the event loop; its rate is the utilization.', {
    prometheus: 'halley_event_loop_active_seconds_total',
  }),
  'ticks.count': counter('Points of event-loop delay.'),
  'ticks.sum': timeCounter('Sum of these delays.'),
  'ticks.within[]': counter(`Points of at most ${list(TICK_BOUNDS)} ms.`),
  'gc.<kind>.count': counter('Garbage collections, by kind (minor, major, incremental, weak).', {
    prometheus: 'halley_gc_runs_total',
  }),
  'gc.<kind>.pause': timeCounter('Time in which garbage collection paused the process, by kind.', {
    prometheus: 'halley_gc_pause_seconds_total',
  }),
  'in.messages': counter('Messages from clients: commands and pongs.', {
    ...OF_WORKERS,
    prometheus: 'halley_worker_messages_received_total',
  }),
  'in.bytes': bytesCounter('Bytes of the messages from clients, uncompressed, without framing.', {
    ...OF_WORKERS,
    prometheus: 'halley_worker_received_bytes_total',
  }),
  'out.messages': counter('Messages to clients: replies, pushes and pings.', {
    ...OF_WORKERS,
    prometheus: 'halley_worker_messages_sent_total',
  }),
  'out.bytes': bytesCounter('Bytes of the messages to clients, uncompressed, without framing.', {
    ...OF_WORKERS,
    prometheus: 'halley_worker_sent_bytes_total',
  }),
}

/** @type {Record<string, Row>} */
const MACHINE_LIFETIMES = {
  'cpu.<mode>': timeCounter(
    'CPU time of all cores since the gateway started, by mode (user, system, idle, iowait, steal).',
    { prometheus: 'halley_machine_cpu_seconds_total' },
  ),
  'network.rx_bytes': bytesCounter(
    'Bytes received since the gateway started, without the loopback interface (unless it is the only one).',
    { prometheus: 'halley_machine_network_received_bytes_total' },
  ),
  'network.tx_bytes': bytesCounter('Bytes sent, counted the same way.', {
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
 * @property {string[]} at paths in a snapshot
 * @property {string} [total] path of merged values
 * @property {string[]} [since] paths of Prometheus metrics, if not `at`
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

/** `[]` and `<name>` are one step each. @param {string} path */
export const stepsOf = path =>
  path
    .replaceAll('[]', '.[]')
    .split('.')
    .filter(step => step !== '')

/**
 * All values at a path, with its labels: `name` or index of array items; protocol, event and name of hooks.
 * @param {any} value @param {string[]} steps @param {(string | number)[]} [labels]
 * @returns {[value: any, ...labels: (string | number)[]][]}
 */
export function valuesAt(value, [step, ...below], labels = []) {
  if (step === undefined) return value === undefined ? [] : [[value, ...labels]]
  if (value === null || value === undefined) return []
  if (step === '[]')
    return value.flatMap((/** @type {any} */ item, /** @type {number} */ index) =>
      valuesAt(item, below, [...labels, item.name ?? index]),
    )
  if (!step.startsWith('<')) return valuesAt(value[step], below, labels)
  const names = (/** @type {string} */ name) =>
    step === '<hook>' || step.includes(' ') ? name.split(' ') : [name]
  return Object.entries(value).flatMap(([name, inner]) => valuesAt(inner, below, [...labels, ...names(name)]))
}

/** @param {string} path in a snapshot @returns {Row & {label: string}} @throws {Error} there is no such metric */
export function metricAt(path) {
  for (const { at, total, rows } of SECTIONS)
    for (const place of total === undefined ? at : [...at, total]) {
      const own = place === '' ? path : path.startsWith(`${place}.`) ? path.slice(place.length + 1) : ''
      const named = stepsOf(own).filter(step => !/^[[<]/.test(step))
      if (Object.hasOwn(rows, own)) return { label: String(named.at(-1)).replaceAll('_', ' '), ...rows[own] }
    }
  throw new Error(`no metric ${path}`)
}

export const EVENTS = {
  started: 'All workers listen.',
  worker_started: 'A worker listens.',
  worker_died: 'A worker exited, with the reason, and is replaced; `info` if the exit was requested.',
  worker_draining:
    'A worker is being replaced: the new process listens, and the old one disconnects its clients.',
  worker_silent: '`warn`: the event loop of a worker is blocked. `info`: it sends samples again.',
  reloaded: 'The configuration was reloaded.',
  slow_clients: 'Clients were disconnected with 3008: they read too slowly.',
  overload: '`warn`: a worker refuses new connections, with the reason. `info`: it accepts them again.',
  redis_lost: 'A worker lost its connection to Redis.',
  redis_back: 'All workers are connected to Redis again.',
  gc: 'A garbage collection was requested.',
  listen_overflow: 'Connections overflowed a listen queue.',
  csv: 'The CSV file cannot be written.',
  log: '`error`: the log cannot be written. `info`: it is writable again.',
  proxy: '`error`: the backend of an event proxy is down, calls fail immediately. `info`: it responds again.',
  driver: '`warn`: uWebSockets.js does not load (with reason and fix); the workers use the driver `node`.',
  files: '`error`: a worker accepts no connections, for lack of descriptors. `info`: it accepts them again.',
  stopping: 'The gateway shuts down.',
}
