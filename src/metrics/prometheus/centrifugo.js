// Families with the names, types, labels and meanings of Centrifugo, so that its dashboards and alerts keep
// working. A label without a known value is empty: Prometheus treats it as absent.

import { disconnects } from '../../base/errors.js'
import { byName, counter, gauge, plainGauge } from './family.js'

/** @import { Facts, PlainFamily, Row } from './family.js' */

const CLIENT = Object.freeze(['transport', 'accept_protocol', 'client_name', 'client_version'])
const FRAME = Object.freeze(['transport', 'frame_type', 'channel_namespace'])
const OWN_CODES = new Set(Object.values(disconnects).map(({ code }) => String(code)))
/** Includes codes that the server API's `disconnect` may send. */
const isOwnCode = (/** @type {string} */ code) => OWN_CODES.has(code) || /^4\d{3}$/.test(code)

/** @param {'in' | 'out'} direction @param {'messages' | 'bytes'} unit @returns {PlainFamily['read']} */
const byTransport =
  (direction, unit) =>
  ({ snapshot }) =>
    Object.entries(snapshot.counters.transports).map(([transport, flows]) => [
      flows[direction][unit],
      transport,
      '',
      '',
    ])

/** @param {Record<string, number>} counts */
const sum = counts => Object.values(counts).reduce((total, count) => total + count, 0)

/** @type {readonly PlainFamily[]} */
export const centrifugo = Object.freeze([
  gauge(
    'centrifugo_node_build',
    'Always 1; the label is the version of Halley.',
    ['version'],
    ({ snapshot }) => [[1, snapshot.node.version]],
  ),
  plainGauge(
    'centrifugo_node_num_clients',
    'Connected clients of this node.',
    ({ snapshot }) => snapshot.totals.connections.connected,
  ),
  plainGauge(
    'centrifugo_node_num_users',
    'Distinct users of this node; anonymous clients count as one. Absent above 50,000 clients or 50,000 channels.',
    ({ users }) => users,
  ),
  plainGauge(
    'centrifugo_node_num_subscriptions',
    'Subscriptions of the clients of this node.',
    ({ snapshot }) => snapshot.totals.subscriptions,
  ),
  plainGauge(
    'centrifugo_node_num_channels',
    'Channels with subscribers on this node. With Redis, absent above 50,000 clients or 50,000 channels.',
    // With Redis, a snapshot counts a channel once per worker.
    ({ snapshot, channels }) => (snapshot.node.engine === 'memory' ? snapshot.totals.channels : channels),
  ),
  plainGauge('centrifugo_node_num_nodes', 'Nodes of the cluster, including this one.', ({ nodes }) => nodes),
  counter(
    'centrifugo_node_messages_sent_count',
    'Publications from clients and the server API; the type is always "publication".',
    ['type', 'channel_namespace'],
    ({ snapshot }) => [[snapshot.counters.publishes, 'publication', '']],
  ),
  counter(
    'centrifugo_node_action_count',
    'Actions; only "add_client" is counted: clients that completed connect.',
    ['action', 'channel_namespace'],
    ({ snapshot }) => [[snapshot.counters.connects, 'add_client', '']],
  ),
  counter(
    'centrifugo_client_connections_accepted',
    'Clients that completed connect, by transport.',
    CLIENT,
    ({ snapshot }) =>
      Object.entries(snapshot.counters.transports).map(([transport, { connects }]) => [
        connects,
        transport,
        '',
        '',
        '',
      ]),
  ),
  gauge(
    'centrifugo_client_connections_inflight',
    'Connected clients, by transport.',
    CLIENT,
    ({ snapshot }) =>
      Object.entries(snapshot.totals.connections.by).map(([transport, codecs]) => [
        sum(codecs),
        transport,
        '',
        '',
        '',
      ]),
  ),
  counter(
    'centrifugo_client_num_reply_errors',
    'Error replies, by error code.',
    ['method', 'code', 'channel_namespace'],
    ({ snapshot }) => byName(snapshot.counters.errors).map(([count, code]) => [count, '', code, '']),
  ),
  counter(
    'centrifugo_client_num_server_disconnects',
    'Connections closed by the gateway, by code.',
    ['code'],
    ({ snapshot }) => byName(snapshot.counters.closes).filter(([, code]) => isOwnCode(String(code))),
  ),
  counter(
    'centrifugo_client_num_server_unsubscribes',
    'Subscriptions ended by the gateway, by code.',
    ['code', 'channel_namespace'],
    ({ snapshot }) => byName(snapshot.counters.unsubscribes).map(([count, code]) => [count, code, '']),
  ),
  counter(
    'centrifugo_client_recover',
    'Subscriptions that requested recovery, by success ("yes" or "no").',
    ['recovered', 'has_recovered_publications', 'channel_namespace'],
    ({ snapshot: { counters } }) => [
      [counters.recoveries.recovered, 'yes', '', ''],
      [counters.recoveries.failed, 'no', '', ''],
    ],
  ),
  counter(
    'centrifugo_transport_messages_sent',
    'Messages to clients: replies, pushes and pings.',
    FRAME,
    byTransport('out', 'messages'),
  ),
  counter(
    'centrifugo_transport_messages_sent_size',
    'Bytes of the messages to clients, uncompressed, without framing.',
    FRAME,
    byTransport('out', 'bytes'),
  ),
  counter(
    'centrifugo_transport_messages_received',
    'Messages from clients: commands and pongs.',
    FRAME,
    byTransport('in', 'messages'),
  ),
  counter(
    'centrifugo_transport_messages_received_size',
    'Bytes of the messages from clients, uncompressed, without framing.',
    FRAME,
    byTransport('in', 'bytes'),
  ),
  counter(
    'centrifugo_api_command_errors_total',
    'Error replies of the server API, by code.',
    ['protocol', 'method', 'error'],
    ({ snapshot }) => {
      const consuming = snapshot.consumers?.api_errors ?? {}
      const all = Object.entries(snapshot.counters.api_errors)
      return [
        ...all.map(
          ([code, count]) => /** @type {Row} */ ([count - (consuming[code] ?? 0), 'http', '', code]),
        ),
        ...byName(consuming).map(([count, code]) => /** @type {Row} */ ([count, 'consuming', '', code])),
      ]
    },
  ),
])
