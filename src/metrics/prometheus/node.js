// Families of the node that Centrifugo does not have.

import { byName, counter, gauge, plainCounter, plainGauge, seconds } from './family.js'

/** @type {readonly import('./family.js').PlainFamily[]} */
export const node = Object.freeze([
  gauge(
    'halley_node_info',
    'Always 1; the labels describe the node.',
    ['name', 'version', 'node_version', 'engine', 'driver'],
    ({ snapshot: { node } }) => [[1, node.name, node.version, node.node_version, node.engine, node.driver]],
  ),
  plainGauge('halley_start_time_seconds', 'Unix time of the start of the gateway.', ({ snapshot }) =>
    seconds(snapshot.node.started_at),
  ),
  plainGauge('halley_snapshot_time_seconds', 'Unix time of these figures.', ({ snapshot }) =>
    seconds(snapshot.time),
  ),
  plainGauge('halley_workers', 'Configured workers.', ({ snapshot }) => snapshot.node.workers),
  plainGauge(
    'halley_connections',
    'Open connections, including clients that have not completed connect.',
    ({ snapshot }) => snapshot.totals.connections.open,
  ),
  gauge(
    'halley_clients',
    'Connected clients, by transport and codec.',
    ['transport', 'codec'],
    ({ snapshot }) =>
      Object.entries(snapshot.totals.connections.by).flatMap(([transport, codecs]) =>
        byName(codecs, transport),
      ),
  ),
  plainCounter(
    'halley_connections_opened_total',
    'Opened connections.',
    ({ snapshot }) => snapshot.counters.accepts,
  ),
  counter(
    'halley_connections_closed_total',
    'Closed connections, by close code of the gateway or the client; 0 for HTTP clients that disconnected.',
    ['code'],
    ({ snapshot }) => byName(snapshot.counters.closes),
  ),
  counter(
    'halley_refused_total',
    'Clients turned away, by reason: an error of connect, a limit, or what they lack.',
    ['reason'],
    ({ snapshot }) => byName(snapshot.counters.refusals),
  ),
  plainCounter(
    'halley_deliveries_total',
    'Publications delivered to subscribers, counted once per subscriber.',
    ({ snapshot }) => snapshot.counters.deliveries,
  ),
  counter('halley_client_commands_total', 'Commands of clients, by method.', ['method'], ({ snapshot }) =>
    byName(snapshot.counters.commands),
  ),
  counter('halley_api_calls_total', 'Calls of the server API, by method.', ['method'], ({ snapshot }) =>
    byName(snapshot.counters.api),
  ),
  plainGauge(
    'halley_outbox_largest_bytes',
    'Unsent bytes of the client that has the most.',
    ({ snapshot }) => snapshot.totals.outbox.largest,
  ),
  plainGauge(
    'halley_kernel_memory_bytes',
    'Kernel memory of all connections of the gateway: sockets and the data queued in them.',
    ({ snapshot }) => snapshot.totals.memory.kernel,
  ),
  plainGauge(
    'halley_connection_memory_bytes',
    'User-space memory per connection, without that of the idle gateway. Absent below 1,000 connections.',
    ({ snapshot }) => snapshot.capacity.bytes_per_connection,
  ),
  plainGauge(
    'halley_connection_kernel_memory_bytes',
    'Kernel memory per connection: the socket and the data queued in it. Absent below 1,000 connections.',
    ({ snapshot }) => snapshot.capacity.kernel_per_connection,
  ),
  gauge(
    'halley_connections_fit',
    'Estimated number of additional connections that fit; the label names the limit (memory, files, connection_limit).',
    ['bound'],
    ({ snapshot: { capacity } }) => [[capacity.fits, capacity.bound ?? '']],
  ),
  plainGauge('halley_csv_bytes', 'Size of the CSV file.', ({ snapshot }) => snapshot.csv?.bytes),
  plainGauge(
    'halley_csv_max_bytes',
    'Size at which the CSV file is rotated.',
    ({ snapshot }) => snapshot.csv?.max_bytes,
  ),
  plainCounter(
    'halley_csv_rotations_total',
    'Rotations of the CSV file.',
    ({ snapshot }) => snapshot.csv?.rotations,
  ),
  plainGauge(
    'halley_csv_failed',
    '1 if the CSV file cannot be written.',
    ({ snapshot }) => snapshot.csv && Number(snapshot.csv.error !== null),
  ),
])
