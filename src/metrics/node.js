// Families of the node that Centrifugo does not have.

import { byName, counter, gauge, one, seconds } from './family.js'

/** @type {readonly import('./family.js').PlainFamily[]} */
export const node = Object.freeze([
  gauge(
    'halley_node_info',
    'Always 1; the labels tell what runs here.',
    ['name', 'version', 'node_version', 'engine', 'driver'],
    ({ snapshot: { node } }) => [[1, node.name, node.version, node.node_version, node.engine, node.driver]],
  ),
  gauge(
    'halley_start_time_seconds',
    'When the gateway started, since 1970.',
    [],
    one(({ snapshot }) => seconds(snapshot.node.started_at)),
  ),
  gauge(
    'halley_snapshot_time_seconds',
    'When these figures were taken, since 1970.',
    [],
    one(({ snapshot }) => seconds(snapshot.time)),
  ),
  gauge(
    'halley_workers',
    'Workers that are configured.',
    [],
    one(({ snapshot }) => snapshot.node.workers),
  ),
  gauge(
    'halley_connections',
    'Transports that are open, also those whose client has not connected yet.',
    [],
    one(({ snapshot }) => snapshot.totals.connections.open),
  ),
  gauge(
    'halley_clients',
    'Clients that are connected, by transport and codec.',
    ['transport', 'codec'],
    ({ snapshot }) =>
      Object.entries(snapshot.totals.connections.by).flatMap(([transport, codecs]) =>
        byName(codecs, transport),
      ),
  ),
  counter(
    'halley_connections_opened_total',
    'Connections that were opened.',
    [],
    one(({ snapshot }) => snapshot.counters.accepts),
  ),
  counter(
    'halley_connections_closed_total',
    'Connections that ended, by code: what the gateway said, or what the client said; 0 for an HTTP client that left.',
    ['code'],
    ({ snapshot }) => byName(snapshot.counters.closes),
  ),
  counter(
    'halley_deliveries_total',
    'Publications that were handed to subscribers, one for each of them.',
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
    'What the client with the most unread data has not taken yet.',
    [],
    one(({ snapshot }) => snapshot.totals.outbox.largest),
  ),
  gauge(
    'halley_kernel_memory_bytes',
    'Kernel memory for all connections of the gateway: their sockets, and what is queued in them.',
    [],
    one(({ snapshot }) => snapshot.totals.memory.kernel),
  ),
  gauge(
    'halley_connection_memory_bytes',
    'User-space memory for each connection, above that of the gateway without connections. Not below 1,000 connections.',
    [],
    one(({ snapshot }) => snapshot.capacity.bytes_per_connection),
  ),
  gauge(
    'halley_connection_kernel_memory_bytes',
    'Kernel memory for each connection: its socket, and what is queued in it. Not below 1,000 connections.',
    [],
    one(({ snapshot }) => snapshot.capacity.kernel_per_connection),
  ),
  gauge(
    'halley_connections_fit',
    'About so many more connections fit; the label tells what ends first (memory, files, connection_limit).',
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
    'How often the CSV file was rotated.',
    [],
    one(({ snapshot }) => snapshot.csv?.rotations),
  ),
  gauge(
    'halley_csv_failed',
    '1 when the CSV file could not be written.',
    [],
    one(({ snapshot }) => snapshot.csv && Number(snapshot.csv.error !== null)),
  ),
])
