// Parts for tests of republishing.

import { loadRepublishers, Republishers } from '../../../../src/backends/queues/republishers.js'
import { loadConfig } from '../../../../src/config/load.js'

/** @import { Destination, DestinationContext, OutgoingMessage } from '../../../../src/backends/queues/contract.js' */

/** Counts and drops lines. */
export const quietLog = () => {
  const lines = []
  const line = level => (fields, message) => void lines.push({ level, fields, message })
  return { lines, info: line('info'), warn: line('warn'), error: line('error'), debug: line('debug') }
}

/** @param {string} channel @param {unknown} data @param {object} [of] other fields @returns {any} a Republication */
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

const ADDRESSES = { rabbitmq: { urls: ['amqp://127.0.0.1'] } }

/** An entry of `republish` with all options. @param {any} [given] @returns {any} */
export function entry(given = {}) {
  const { type = 'rabbitmq', [type]: block, ...of } = given
  const own = { ...ADDRESSES[type], ...block }
  const base = { name: 'out', enabled: true, type, channels: ['*'], sources: ['client'], [type]: own }
  const [made] = loadConfig({ base: { republish: [base] } }).config.republish
  // Other options may be smaller than a configuration allows.
  return { ...made, ...of }
}

/**
 * Republishers with real destinations.
 * @param {any} t ends with this test @param {any} options of an entry, or a list of these
 * @param {string} [ids] with which those of messages begin
 */
export async function startRepublishers(t, options, ids = 'r-') {
  const config = { republish: [options].flat().map(entry), channel: { namespace_boundary: ':' } }
  const log = quietLog()
  const confirms = []
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

/** A destination controlled by the test. */
export class FakeDestination {
  /** @type {OutgoingMessage[]} sent, without an outcome */
  sent = []
  started = false
  constructor(context) {
    this.context = context
  }

  start() {
    this.started = true
  }

  send(message) {
    this.sent.push(message)
  }

  /** @returns {any[]} data of the sent messages */
  get data() {
    return this.sent.map(({ body }) => JSON.parse(body.toString()).data)
  }

  settle(count, outcome = 'confirmed') {
    for (const message of this.sent.splice(0, count)) this.context.settled(message, outcome)
  }

  down() {
    this.sent = []
    this.context.down(new Error('gone'))
  }

  async stop() {}
}
