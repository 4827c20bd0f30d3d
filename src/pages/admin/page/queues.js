import { bytes, ms, plural, short, UNKNOWN } from '../../../base/format.js'
import { byId } from '../../web/dom.js'
import { figure, Table, words } from '../../web/table.js'

/** @import { ConsumerFigures, RepublisherFigures, Snapshot } from '../../../metrics/schema.js' */
/** @import { TableColumn } from '../../web/table.js' */

/** @param {Record<string, number>} counts */
const sum = counts => Object.values(counts).reduce((total, count) => total + count, 0)

/** @param {Record<string, number>} counts @returns {string} with reasons: 3 (malformed 2, too_large 1) */
function reasons(counts) {
  const parts = Object.entries(counts).filter(([, count]) => count > 0)
  if (parts.length === 0) return '0'
  return `${short(sum(counts))} (${parts.map(([name, count]) => `${name} ${short(count)}`).join(', ')})`
}

/** @param {number} time ms @returns {string} UNKNOWN for 0 */
const time = time => (time === 0 ? UNKNOWN : ms(time))

/** @param {string} hint */
const alarm = hint => ({ hint, tone: (/** @type {number} */ value) => (value > 0 ? 'warn' : '') })

/** @type {TableColumn<ConsumerFigures>[]} */
const CONSUMERS = [
  words('Consumer', ({ name }) => name, { tone: () => 'name' }),
  words('Type', ({ type }) => type),
  figure('Processed', one => one.processed, short, { hint: 'including skipped messages' }),
  {
    ...figure('Skipped', ({ skipped }) => sum(skipped), short, alarm('invalid, not retried, by reason')),
    words: true,
    text: ({ skipped }) => reasons(skipped),
  },
  figure('Errors', one => one.errors, short, { hint: 'failed attempts, and failures of the source' }),
  figure('Retries', one => one.retries, short, { hint: 'failed attempts of messages that are retried' }),
  figure('Age', one => one.age, time, { hint: 'of the oldest pending message, ms' }),
  figure('Back-off', one => one.backoff, time, alarm('delay before the next retry, ms')),
  figure('Lag', one => one.lag, short, { hint: 'messages waiting at the source, if it reports them' }),
]

/** @type {TableColumn<RepublisherFigures>[]} */
const REPUBLISHERS = [
  words('Republisher', ({ name }) => name, { tone: () => 'name' }),
  words('State', ({ up }) => (up ? 'up' : 'down'), { tone: ({ up }) => (up ? 'good' : 'bad') }),
  figure('Sent', one => one.sent, short, { hint: 'including retries' }),
  figure('Confirmed', one => one.confirmed, short, { hint: 'accepted by the queue' }),
  figure('Returned', one => one.returned, short, alarm('unroutable messages')),
  figure('Refused', one => one.refused, short, alarm('by the destination')),
  figure('Dropped', one => one.dropped, short, alarm('the queue in the gateway was full')),
  figure('Queue', one => one.queued, short, { hint: 'messages without an outcome' }),
  figure('Bytes', one => one.queued_bytes, bytes, { hint: 'approximate memory of the queue' }),
  figure('Age', one => one.age, time, { hint: 'of the oldest message in the queue, ms' }),
]

/** The tables of consumers and republishers, if any. @returns {(snapshot: Snapshot) => void} */
export function queuesTables() {
  const consumers = new Table(byId('consumers'), 'Consumers', CONSUMERS, { key: ({ name }) => name })
  const republishers = new Table(byId('republishers'), 'Republishers', REPUBLISHERS, {
    key: ({ name }) => name,
  })
  return snapshot => {
    // An older gateway has neither.
    const list = snapshot.consumers?.list ?? []
    const others = snapshot.republishers ?? []
    byId('consumers-card').hidden = list.length === 0
    byId('consumers-count').textContent = plural(list.length, 'consumer')
    consumers.show(list)
    byId('republishers-card').hidden = others.length === 0
    byId('republishers-count').textContent = plural(others.length, 'republisher')
    republishers.show(others)
  }
}
