// The columns of the CSV file, in a fixed order: new ones go to the end, so positions stay valid. A test compares
// docs/csv.md with this table.

/** @import { ConsumerFigures, Snapshot } from './schema.js' */

/** @typedef {number | string | null} Cell null: unknown */

/**
 * @typedef {object} CsvColumn
 * @property {string} name suffix: unit `_ms`, `_bytes`, `_pct`, `_s` (per second); none: a count
 * @property {string} doc
 * @property {(snapshot: Snapshot) => Cell} value
 */

/**
 * @param {string} name @param {string} doc @param {(snapshot: Snapshot) => Cell} value
 * @returns {CsvColumn}
 */
const column = (name, doc, value) => ({ name, doc, value })

/** @param {number} share of a core @returns {number} per cent, one digit */
const percent = share => Math.round(share * 1000) / 10

/** @param {number} ms @returns {number} two digits */
const hundredths = ms => Math.round(ms * 100) / 100

/** @param {Record<string, number>} counts by name */
const sum = counts => Object.values(counts).reduce((total, count) => total + count, 0)

/** @param {string} name @param {string} doc @param {keyof NonNullable<Snapshot['machine']['cpu']>} kind */
const machineCpu = (name, doc, kind) =>
  column(name, doc, ({ machine: { cpu, cores } }) => (cpu === null ? null : percent(cpu[kind] * cores)))

/** @param {'minor' | 'major' | 'incremental' | 'weak'} kind @param {string} doc what it is */
const collections = (kind, doc) => [
  column(`gc_${kind}`, `${doc} in workers`, ({ totals }) => totals.gc[kind].count),
  column(`gc_${kind}_ms`, 'total time of these in all workers', ({ totals }) =>
    hundredths(totals.gc[kind].pause),
  ),
]

/**
 * @param {string} name @param {string} doc
 * @param {(list: ConsumerFigures[]) => Cell} value not called without consumers
 */
const ofConsumers = (name, doc, value) =>
  column(`consumers_${name}`, doc, ({ consumers }) => (consumers ? value(consumers.list) : null))

/** @param {ConsumerFigures[]} list @param {(figures: ConsumerFigures) => number} value */
const total = (list, value) => list.reduce((all, one) => all + value(one), 0)

/**
 * Facts that do not change while a gateway runs, form-encoded, for its first row.
 * @param {Snapshot} snapshot @returns {string}
 */
export function factsOf({ node, machine }) {
  return new URLSearchParams({
    version: node.version,
    name: node.name,
    engine: node.engine,
    driver: node.driver,
    node_version: node.node_version,
    workers: String(node.workers),
    started_at: String(node.started_at),
    cores: String(machine.cores),
    memory: String(machine.memory.total),
  }).toString()
}

/** @type {readonly CsvColumn[]} */
export const CSV_COLUMNS = Object.freeze([
  column('time', 'end of the second, in ms since 1970', s => s.time),
  column('seq', 'number of the row since the start of the gateway', s => s.seq),
  column('elapsed_ms', 'time since the start of the gateway', s => s.time - s.node.started_at),
  column('interval_ms', 'time since the previous row; counts cover this time', s => s.interval),
  column('collect_ms', 'time from the full second until this row was complete', s => s.collect ?? null),
  column('workers', 'workers that are up', s => s.totals.workers),
  column('worker_deaths', 'deaths of workers since the start of the gateway', s =>
    s.workers.reduce((deaths, worker) => deaths + worker.deaths, 0),
  ),
  column('connections', 'open connections, of all transports', s => s.totals.connections.open),
  column(
    'clients',
    "connections whose client completed the protocol's connect",
    s => s.totals.connections.connected,
  ),
  column('subscriptions', 'subscriptions of all clients', s => s.totals.subscriptions),
  column('channels', 'channels with subscribers', s => s.totals.channels),
  column('accepts', 'opened connections', s => s.totals.counts.accepts),
  column('closes', 'closed connections, with any code', s => sum(s.totals.counts.closes)),
  column('connects', 'clients that completed connect', s => s.totals.counts.connects),
  column('messages_in', 'messages from clients: commands and pongs', s => s.totals.counts.in.messages),
  column('messages_out', 'messages to clients: replies, pushes, pings', s => s.totals.counts.out.messages),
  column('messages_out_total', 'messages_out since the start of the gateway', s => s.counters.out.messages),
  column('payload_in_bytes', 'bytes of messages_in, without framing', s => s.totals.counts.in.bytes),
  column('payload_out_bytes', 'bytes of messages_out, without framing', s => s.totals.counts.out.bytes),
  column('publishes', 'publications from clients and the server API', s => s.totals.counts.publishes),
  column(
    'deliveries',
    'publications delivered to subscribers, counted once per subscriber',
    s => s.totals.counts.deliveries,
  ),
  column('errors', 'error replies to clients, with any code', s => sum(s.totals.counts.errors)),
  column('unsubscribes', 'unsubscribes sent by the gateway', s => sum(s.totals.counts.unsubscribes)),
  column('recovered', 'subscriptions that recovered', s => s.totals.counts.recoveries.recovered),
  column('unrecovered', 'subscriptions that could not recover', s => s.totals.counts.recoveries.failed),
  column('api_calls', 'calls of the server API', s => sum(s.totals.counts.api)),
  column('api_errors', 'calls of the server API answered with an error', s =>
    sum(s.totals.counts.api_errors),
  ),
  column('outbox_bytes', 'unsent bytes of all clients', s => s.totals.outbox.bytes),
  column(
    'outbox_largest_bytes',
    'unsent bytes of the client that has the most',
    s => s.totals.outbox.largest,
  ),

  column('tick_min_ms', 'event-loop delay, minimum of all workers', s => hundredths(s.totals.loop.ticks.min)),
  column('tick_avg_ms', 'event-loop delay, average of all workers', s => hundredths(s.totals.loop.ticks.avg)),
  column('tick_p50_ms', 'event-loop delay, median of all workers', s => hundredths(s.totals.loop.ticks.p50)),
  column('tick_p90_ms', 'event-loop delay, 90th percentile of all workers, from merged histograms', s =>
    hundredths(s.totals.loop.ticks.p90),
  ),
  column('tick_p99_ms', 'event-loop delay, 99th percentile, likewise', s =>
    hundredths(s.totals.loop.ticks.p99),
  ),
  column('tick_max_ms', 'event-loop delay, maximum of all workers', s => hundredths(s.totals.loop.ticks.max)),
  column('loop_busy_pct', 'active time of the event loop, of the busiest worker', s =>
    percent(s.totals.loop.utilization),
  ),

  column('heap_used_bytes', 'JS heap in use', s => s.totals.memory.heap_used),
  column('heap_total_bytes', 'committed JS heap', s => s.totals.memory.heap_total),
  column('external_bytes', 'buffers outside of the JS heap', s => s.totals.memory.external),
  column('rss_bytes', 'resident memory', s => s.totals.memory.rss),
  column('native_bytes', 'rss_bytes without heap_total_bytes', s => s.totals.memory.native),
  ...collections('minor', 'collections of the young generation'),
  ...collections('major', 'collections of the whole heap'),
  ...collections('incremental', 'steps of incremental marking'),
  ...collections('weak', 'runs of weak callbacks'),
  column('cpu_user_pct', 'CPU time of the gateway in user space', s => percent(s.totals.cpu.user)),
  column('cpu_system_pct', 'CPU time of the gateway in the kernel', s => percent(s.totals.cpu.system)),
  column('cpu_pct', 'cpu_user_pct + cpu_system_pct', s => percent(s.totals.cpu.user + s.totals.cpu.system)),

  column('cores', 'cores of the machine', s => s.machine.cores),
  machineCpu('machine_cpu_user_pct', 'user space, nice included', 'user'),
  machineCpu('machine_cpu_system_pct', 'kernel, interrupts included', 'system'),
  machineCpu('machine_cpu_idle_pct', 'idle', 'idle'),
  machineCpu('machine_cpu_iowait_pct', 'waiting for disks', 'iowait'),
  machineCpu('machine_cpu_steal_pct', 'stolen by other virtual machines', 'steal'),
  column('load_1m', 'load average over a minute', s => s.machine.load?.[0] ?? null),
  column('machine_memory_total_bytes', 'total memory', s => s.machine.memory.total),
  column('machine_memory_used_bytes', 'used memory, without caches', s => s.machine.memory.used),
  column('machine_memory_free_bytes', 'free memory', s => s.machine.memory.free),
  column(
    'machine_memory_available_bytes',
    'memory available without swapping',
    s => s.machine.memory.available,
  ),
  column(
    'machine_memory_caches_bytes',
    'page cache, buffers, reclaimable slab',
    s => s.machine.memory.caches,
  ),
  column('slab_bytes', 'kernel slab memory of the whole machine', s => s.machine.memory.slab),
  column('sockets', 'sockets of all kinds in use', s => s.machine.sockets?.used ?? null),
  column('tcp_sockets', 'TCP sockets in use', s => s.machine.sockets?.tcp.inuse ?? null),
  column('tcp_orphans', 'TCP sockets without a process', s => s.machine.sockets?.tcp.orphan ?? null),
  column('tcp_time_wait', 'TCP sockets in TIME_WAIT', s => s.machine.sockets?.tcp.time_wait ?? null),
  column(
    'tcp_memory_bytes',
    'buffers of all TCP sockets of the machine',
    s => s.machine.sockets?.tcp.memory ?? null,
  ),
  column('net_rx_bytes_s', 'bytes received over the network', s => s.machine.network?.rx_bytes ?? null),
  column('net_tx_bytes_s', 'bytes sent over the network', s => s.machine.network?.tx_bytes ?? null),
  column('net_rx_packets_s', 'packets received', s => s.machine.network?.rx_packets ?? null),
  column('net_tx_packets_s', 'packets sent', s => s.machine.network?.tx_packets ?? null),
  column(
    'listen_overflows',
    'connections that overflowed a listen queue',
    s => s.machine.listen?.overflows ?? null,
  ),
  column('listen_drops', 'connections dropped by listening sockets', s => s.machine.listen?.drops ?? null),
  column('files_open', 'open files of the machine', s => s.machine.files?.open ?? null),
  column('files_limit', 'maximum open files of the machine', s => s.machine.files?.limit ?? null),

  column(
    'bytes_per_connection',
    'user-space memory per connection, without that of the idle gateway; from 1,000 connections on',
    s => rounded(s.capacity.bytes_per_connection),
  ),
  column(
    'kernel_bytes_per_connection',
    'kernel memory per connection: the socket and the data queued in it; from 1,000 connections on',
    s => rounded(s.capacity.kernel_per_connection),
  ),
  column('fits', 'estimated number of additional connections that fit', s => rounded(s.capacity.fits)),
  column(
    'facts',
    'facts about gateway and machine, form-encoded; only in the first row that a gateway writes to a file',
    () => null,
  ),
  column(
    'kernel_bytes',
    'kernel memory of all connections of the gateway: sockets and the data queued in them',
    s => s.totals.memory.kernel,
  ),
  column(
    'workers_overloaded',
    'workers that refuse new connections because of their event-loop delay or their memory',
    s => s.workers.filter(({ sample }) => sample !== null && sample.overload !== null).length,
  ),
  ofConsumers('processed_total', 'messages that all consumers have processed, skipped ones included', list =>
    total(list, ({ processed }) => processed),
  ),
  ofConsumers('skipped_total', 'bad messages that all consumers have skipped', list =>
    total(list, ({ skipped }) => sum(skipped)),
  ),
  ofConsumers('errors_total', 'failed tries of messages, and failures of their sources', list =>
    total(list, ({ errors }) => errors),
  ),
  ofConsumers('lag', 'messages that wait at the sources, of the consumers that know', list => {
    const known = list.filter(({ lag }) => lag !== null)
    return known.length === 0 ? null : total(known, ({ lag }) => lag ?? 0)
  }),
  ofConsumers('age_ms', 'age of the oldest message in work', list =>
    Math.round(Math.max(...list.map(({ age }) => age))),
  ),
])

/** @param {number | null} value */
function rounded(value) {
  return value === null ? null : Math.round(value)
}

/** With its line feed. */
export const CSV_HEADER = `${CSV_COLUMNS.map(({ name }) => name).join(',')}\n`

/** @param {Snapshot} snapshot @param {boolean} first of this gateway in the file @returns {string} */
export function csvRow(snapshot, first) {
  // Numbers and one form-encoded text need no quotes.
  const cells = CSV_COLUMNS.map(({ name, value }) =>
    first && name === 'facts' ? factsOf(snapshot) : (value(snapshot) ?? ''),
  )
  return `${cells.join(',')}\n`
}
