// Parts for tests of republishing.

import { loadRepublishers, Republishers } from '../../../../src/backends/queues/republishers.js'

/** @import { Destination, DestinationContext, OutgoingMessage } from '../../../../src/backends/queues/contract.js' */

/** Counts and drops lines. */
export const quietLog = () => {
  /** @type {{level: string, fields: any, message: string}[]} */
  const lines = []
  const line = (/** @type {string} */ level) => (/** @type {any} */ fields, /** @type {string} */ message) =>
    void lines.push({ level, fields, message })
  return { lines, info: line('info'), warn: line('warn'), error: line('error'), debug: line('debug') }
}

/**
 * @param {string} channel @param {unknown} data @param {object} [of] other fields
 * @returns {any} a Republication
 */
export const republication = (channel, data, of = {}) => ({
  number: 0,
  to: 1,
  source: 0,
  time: Date.now(),
  channel,
  meta: '',
  publication: {
    data: Buffer.from(JSON.stringify(data)),
    json: true,
    info: '{"user":"7","client":"c"}',
    tags: null,
    offset: 1,
    epoch: 'abcdefgh',
  },
  ...of,
})

/** An entry of `republish`. @param {any} [of] */
export const entry = of => ({
  name: 'out',
  type: 'rabbitmq',
  enabled: true,
  channels: ['*'],
  namespaces: [],
  sources: ['client'],
  include_meta: false,
  format: 'halley',
  queue_max_size: 10_000,
  queue_max_bytes: 16 * 1024 * 1024,
  overflow: 'drop_oldest',
  required: false,
  required_timeout: 5000,
  ...of,
  rabbitmq: {
    urls: [],
    tls: { enabled: false },
    vhost: '',
    exchange: '{channel}',
    exchange_type: 'fanout',
    declare: false,
    routing_key: '',
    persistent: true,
    mandatory: false,
    confirm: true,
    max_in_flight: 1000,
    ...of?.rabbitmq,
  },
  redis_stream: {
    address: '',
    user: '',
    password: '',
    db: 0,
    tls: { enabled: false },
    stream: 'out',
    max_length: 0,
    payload_value: 'payload',
    max_in_flight: 1000,
    ...of?.redis_stream,
  },
  nats_jetstream: {
    url: '',
    credentials_file: '',
    username: '',
    password: '',
    token: '',
    tls: { enabled: false },
    subject: 'out',
    max_in_flight: 1000,
    ...of?.nats_jetstream,
  },
  kafka: {
    brokers: [],
    topic: 'out',
    dial_timeout: 3000,
    tls: { enabled: false },
    sasl_mechanism: '',
    sasl_user: '',
    sasl_password: '',
    max_in_flight: 1000,
    ...of?.kafka,
  },
})

/**
 * Republishers with real destinations.
 * @param {any} t ends with this test @param {any} options of an entry, or a list of these
 * @param {string} [ids] with which those of messages begin
 */
export async function startRepublishers(t, options, ids = 'r-') {
  const config = { republish: [options].flat().map(entry), channel: { namespace_boundary: ':' } }
  const log = quietLog()
  /** @type {[number, boolean][]} */
  const confirms = []
  /** @type {number[]} */
  const reports = []
  const all = new Republishers(
    /** @type {any} */ (config),
    await loadRepublishers(/** @type {any} */ (config)),
    {
      origin: 'here',
      ids,
      log: /** @type {any} */ (log),
      republishing: {
        full: 0,
        hand() {},
        confirm: (number, confirmed) => void confirms.push([number, confirmed]),
        report: full => void reports.push(full),
      },
    },
  )
  all.start()
  t.teardown(() => all.stop(0))
  return { all, log, confirms, reports, figures: (i = 0) => all.figures(Date.now())[i] }
}

/** A destination that does what the test says. */
export class FakeDestination {
  /** @type {OutgoingMessage[]} sent, without an outcome */
  sent = []
  started = false
  /** @param {DestinationContext} context */
  constructor(context) {
    this.context = context
  }

  start() {
    this.started = true
  }

  /** @param {OutgoingMessage} message */
  send(message) {
    this.sent.push(message)
  }

  /** @returns {any[]} data of what was sent */
  get data() {
    return this.sent.map(({ body }) => JSON.parse(body.toString()).data)
  }

  /** @param {number} count @param {'confirmed' | 'returned' | 'refused'} [outcome] */
  settle(count, outcome = 'confirmed') {
    for (const message of this.sent.splice(0, count)) this.context.settled(message, outcome)
  }

  down() {
    this.sent = []
    this.context.down(new Error('gone'))
  }

  async stop() {}
}
