// Families of the node that Centrifugo does not have.

import { byName, counter, gauge, one, seconds } from './family.js'

/** @type {readonly import('./family.js').PlainFamily[]} */
export const node = Object.freeze([
  gauge(
    'halley_node_info',
    'Always 1; the labels describe the node.',
    ['name', 'version', 'node_version', 'engine', 'driver'],
    ({ snapshot: { node } }) => [[1, node.name, node.version, node.node_version, node.engine, node.driver]],
  ),
  gauge(
    'halley_start_time_seconds',
    'Unix time of the start of the gateway.',
    [],
    one(({ snapshot }) => seconds(snapshot.node.started_at)),
  ),
  gauge(
    'halley_snapshot_time_seconds',
    'Unix time of these figures.',
    [],
    one(({ snapshot }) => seconds(snapshot.time)),
  ),
  gauge(
    'halley_workers',
    'Configured workers.',
    [],
    one(({ snapshot }) => snapshot.node.workers),
  ),
  gauge(
    'halley_connections',
    'Open connections, including clients that have not completed connect.',
    [],
    one(({ snapshot }) => snapshot.totals.connections.open),
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
  counter(
    'halley_connections_opened_total',
    'Opened connections.',
    [],
    one(({ snapshot }) => snapshot.counters.accepts),
  ),
  counter(
    'halley_connections_closed_total',
    'Closed connections, by close code of the gateway or the client; 0 for HTTP clients that disconnected.',
    ['code'],
    ({ snapshot }) => byName(snapshot.counters.closes),
  ),
  counter(
    'halley_deliveries_total',
    'Publications delivered to subscribers, counted once per subscriber.',
    [],
    one(({ snapshot }) => snapshot.counters.deliveries),
  ),
  counter('halley_client_commands_total', 'Commands of clients, by method.', ['method'], ({ snapshot }) =>
    byName(snapshot.counters.commands),
  ),
  counter('halley_api_calls_total', 'Calls of the server API, by method.', ['method'], ({ snapshot }) =>
    byName(snapshot.counters.api),
  ),
  gauge(
    'halley_outbox_largest_bytes',
    'Unsent bytes of the client that has the most.',
    [],
    one(({ snapshot }) => snapshot.totals.outbox.largest),
  ),
  gauge(
    'halley_kernel_memory_bytes',
    'Kernel memory of all connections of the gateway: sockets and the data queued in them.',
    [],
    one(({ snapshot }) => snapshot.totals.memory.kernel),
  ),
  gauge(
    'halley_connection_memory_bytes',
    'User-space memory per connection, without that of the idle gateway. Absent below 1,000 connections.',
    [],
    one(({ snapshot }) => snapshot.capacity.bytes_per_connection),
  ),
  gauge(
    'halley_connection_kernel_memory_bytes',
    'Kernel memory per connection: the socket and the data queued in it. Absent below 1,000 connections.',
    [],
    one(({ snapshot }) => snapshot.capacity.kernel_per_connection),
  ),
  gauge(
    'halley_connections_fit',
    'Estimated number of additional connections that fit; the label names the limit (memory, files, connection_limit).',
    ['bound'],
    ({ snapshot: { capacity } }) => [[capacity.fits, capacity.bound ?? '']],
  ),
  gauge(
    'halley_csv_bytes',
    'Size of the CSV file.',
    [],
    one(({ snapshot }) => snapshot.csv?.bytes),
  ),
  gauge(
    'halley_csv_max_bytes',
    'Size at which the CSV file is rotated.',
    [],
    one(({ snapshot }) => snapshot.csv?.max_bytes),
  ),
  counter(
    'halley_csv_rotations_total',
    'Rotations of the CSV file.',
    [],
    one(({ snapshot }) => snapshot.csv?.rotations),
  ),
  gauge(
    'halley_csv_failed',
    '1 if the CSV file cannot be written.',
    [],
    one(({ snapshot }) => snapshot.csv && Number(snapshot.csv.error !== null)),
  ),
])
