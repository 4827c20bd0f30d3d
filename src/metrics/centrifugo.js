// Families with the names, types, labels and meanings of Centrifugo, so that its dashboards and alerts keep
// working. A label without a known value is empty: Prometheus treats it as absent.

import { disconnects } from '../errors.js'
import { byName, counter, gauge, one } from './family.js'

/**
 * @typedef {import('./family.js').Facts} Facts
 * @typedef {import('./family.js').PlainFamily} PlainFamily
 */

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
    'Always 1; the label tells the version of Halley.',
    ['version'],
    ({ snapshot }) => [[1, snapshot.node.version]],
  ),
  gauge(
    'centrifugo_node_num_clients',
    'Clients that are connected to this node.',
    [],
    one(({ snapshot }) => snapshot.totals.connections.connected),
  ),
  gauge(
    'centrifugo_node_num_users',
    'Different users among the clients of this node; all clients without a user count as one. Only up to 50,000 clients and 50,000 channels.',
    [],
    one(({ users }) => users),
  ),
  gauge(
    'centrifugo_node_num_subscriptions',
    'Subscriptions of the clients of this node.',
    [],
    one(({ snapshot }) => snapshot.totals.subscriptions),
  ),
  gauge(
    'centrifugo_node_num_channels',
    'Channels with subscribers on this node. With Redis only up to 50,000 clients and 50,000 channels.',
    [],
    // With Redis, a snapshot counts a channel once per worker.
    one(({ snapshot, channels }) =>
      snapshot.node.engine === 'memory' ? snapshot.totals.channels : channels,
    ),
  ),
  gauge(
    'centrifugo_node_num_nodes',
    'Nodes that are one gateway, this one included.',
    [],
    one(({ nodes }) => nodes),
  ),
  counter(
    'centrifugo_node_messages_sent_count',
    'Publications that were handed to the engine, from clients and from the server API; the type is always "publication".',
    ['type', 'channel_namespace'],
    ({ snapshot }) => [[snapshot.counters.publishes, 'publication', '']],
  ),
  counter(
    'centrifugo_node_action_count',
    'What was done, by action; only "add_client" is counted: clients that connected.',
    ['action', 'channel_namespace'],
    ({ snapshot }) => [[snapshot.counters.connects, 'add_client', '']],
  ),
  counter(
    'centrifugo_client_connections_accepted',
    'Clients that connected, by transport.',
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
    'Clients that are connected, by transport.',
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
    'Replies with an error, by its code.',
    ['method', 'code', 'channel_namespace'],
    ({ snapshot }) => byName(snapshot.counters.errors).map(([count, code]) => [count, '', code, '']),
  ),
  counter(
    'centrifugo_client_num_server_disconnects',
    'Connections that the gateway ended, by code.',
    ['code'],
    ({ snapshot }) => byName(snapshot.counters.closes).filter(([, code]) => isOwnCode(String(code))),
  ),
  counter(
    'centrifugo_client_num_server_unsubscribes',
    'Subscriptions that the gateway ended, by code.',
    ['code', 'channel_namespace'],
    ({ snapshot }) => byName(snapshot.counters.unsubscribes).map(([count, code]) => [count, code, '']),
  ),
  counter(
    'centrifugo_client_recover',
    'Subscriptions that asked to recover, by whether they were ("yes" or "no").',
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
    'Errors that the server API answered with, by code.',
    ['protocol', 'method', 'error'],
    ({ snapshot }) => byName(snapshot.counters.api_errors).map(([count, code]) => [count, 'http', '', code]),
  ),
])
