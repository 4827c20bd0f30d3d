// Families of each worker: state, clients, traffic.

import { counter, gauge, seconds } from './family.js'

/** @import { Lifetime, WorkerSample, WorkerView } from '../schema.js' */
/** @import { PlainFamily } from './family.js' */

const WORKER = Object.freeze(['worker'])

/** Of each slot. @param {string} name @param {string} help @param {(view: WorkerView) => number | null} value */
const slot = (name, help, value) =>
  gauge(name, help, WORKER, ({ snapshot }) => snapshot.workers.map(view => [value(view), view.index]))

/** Of running workers. @param {string} name @param {string} help @param {(sample: WorkerSample) => number} value */
const current = (name, help, value) => slot(name, help, ({ sample }) => sample && value(sample))

/** A sum of each slot. @param {string} name @param {string} help @param {(lifetime: Lifetime) => number} value */
const total = (name, help, value) =>
  counter(name, help, WORKER, ({ snapshot }) =>
    snapshot.lifetimes.workers.map((lifetime, index) => [value(lifetime), index]),
  )

/** @type {readonly PlainFamily[]} */
export const workers = Object.freeze([
  slot(
    'halley_worker_up',
    '1 if the worker serves clients; 0 if it is starting, silent or down.',
    ({ state }) => Number(state === 'up'),
  ),
  slot(
    'halley_worker_sample_age_seconds',
    'Age of the latest sample of the worker. It grows while the event loop of the worker is blocked.',
    ({ age }) => seconds(age),
  ),
  counter('halley_worker_deaths_total', 'Deaths of workers with this index.', WORKER, ({ snapshot }) =>
    snapshot.workers.map(({ deaths, index }) => [deaths, index]),
  ),
  current(
    'halley_worker_overloaded',
    '1 while the worker refuses new connections because of its event-loop delay or its memory.',
    ({ overload }) => Number(overload !== null),
  ),
  current(
    'halley_worker_accepting',
    '1 if the worker accepts connections; 0 while too few file descriptors are free.',
    ({ accepting }) => Number(accepting),
  ),
  current(
    'halley_worker_connections',
    'Open connections, including clients that have not completed connect.',
    ({ connections }) => connections.open,
  ),
  current('halley_worker_clients', 'Connected clients.', ({ connections }) => connections.connected),
  current(
    'halley_worker_subscriptions',
    'Subscriptions of the clients of this worker.',
    ({ subscriptions }) => subscriptions,
  ),
  current('halley_worker_channels', 'Channels with subscribers in this worker.', ({ channels }) => channels),
  current('halley_worker_outbox_bytes', 'Unsent bytes of all clients.', ({ outbox }) => outbox.bytes),
  total(
    'halley_worker_messages_received_total',
    'Messages from clients: commands and pongs.',
    lifetime => lifetime.in.messages,
  ),
  total(
    'halley_worker_messages_sent_total',
    'Messages to clients: replies, pushes and pings.',
    lifetime => lifetime.out.messages,
  ),
  total(
    'halley_worker_received_bytes_total',
    'Bytes of the messages from clients, uncompressed, without framing.',
    lifetime => lifetime.in.bytes,
  ),
  total(
    'halley_worker_sent_bytes_total',
    'Bytes of the messages to clients, uncompressed, without framing.',
    lifetime => lifetime.out.bytes,
  ),
])
