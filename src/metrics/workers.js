// Families of each worker: state, clients, traffic.

import { counter, gauge, seconds } from './family.js'

/**
 * @typedef {import('../stats/schema.js').WorkerView} WorkerView
 * @typedef {import('../stats/schema.js').WorkerSample} WorkerSample
 * @typedef {import('../stats/schema.js').Lifetime} Lifetime
 * @typedef {import('./family.js').PlainFamily} PlainFamily
 */

const WORKER = Object.freeze(['worker'])

/** @param {(view: WorkerView) => number | null} value @returns {PlainFamily['read']} of all workers */
const ofViews =
  value =>
  ({ snapshot }) =>
    snapshot.workers.map(view => [value(view), view.index])

/** @param {(sample: WorkerSample) => number} value @returns {PlainFamily['read']} of running workers */
const ofEach = value => ofViews(({ sample }) => sample && value(sample))

/** @param {(lifetime: Lifetime) => number} value @returns {PlainFamily['read']} of all slots */
const ofLifetimes =
  value =>
  ({ snapshot }) =>
    snapshot.lifetimes.workers.map((lifetime, index) => [value(lifetime), index])

/** @type {readonly PlainFamily[]} */
export const workers = Object.freeze([
  gauge(
    'halley_worker_up',
    '1 if the worker serves clients; 0 if it is starting, silent or down.',
    WORKER,
    ofViews(({ state }) => Number(state === 'up')),
  ),
  gauge(
    'halley_worker_sample_age_seconds',
    'Age of the latest sample of the worker. It grows while the event loop of the worker is blocked.',
    WORKER,
    ofViews(({ age }) => seconds(age)),
  ),
  counter(
    'halley_worker_deaths_total',
    'Deaths of workers with this index.',
    WORKER,
    ofViews(({ deaths }) => deaths),
  ),
  gauge(
    'halley_worker_connections',
    'Open connections, including clients that have not completed connect.',
    WORKER,
    ofEach(({ connections }) => connections.open),
  ),
  gauge(
    'halley_worker_clients',
    'Connected clients.',
    WORKER,
    ofEach(({ connections }) => connections.connected),
  ),
  gauge(
    'halley_worker_subscriptions',
    'Subscriptions of the clients of this worker.',
    WORKER,
    ofEach(({ subscriptions }) => subscriptions),
  ),
  gauge(
    'halley_worker_channels',
    'Channels with subscribers in this worker.',
    WORKER,
    ofEach(({ channels }) => channels),
  ),
  gauge(
    'halley_worker_outbox_bytes',
    'Unsent bytes of all clients.',
    WORKER,
    ofEach(({ outbox }) => outbox.bytes),
  ),
  counter(
    'halley_worker_messages_received_total',
    'Messages from clients: commands and pongs.',
    WORKER,
    ofLifetimes(lifetime => lifetime.in.messages),
  ),
  counter(
    'halley_worker_messages_sent_total',
    'Messages to clients: replies, pushes and pings.',
    WORKER,
    ofLifetimes(lifetime => lifetime.out.messages),
  ),
  counter(
    'halley_worker_received_bytes_total',
    'Bytes of the messages from clients, uncompressed, without framing.',
    WORKER,
    ofLifetimes(lifetime => lifetime.in.bytes),
  ),
  counter(
    'halley_worker_sent_bytes_total',
    'Bytes of the messages to clients, uncompressed, without framing.',
    WORKER,
    ofLifetimes(lifetime => lifetime.out.bytes),
  ),
])
