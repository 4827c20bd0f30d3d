import { bytes, ms, plural, short, UNKNOWN } from '../../../base/format.js'
import { byId } from '../../web/dom.js'
import { Table } from '../../web/table.js'

/** @import { ConsumerFigures, RepublisherFigures, Snapshot } from '../../../metrics/schema.js' */
/** @import { TableColumn } from '../../web/table.js' */

/** @param {Record<string, number>} counts */
const sum = counts => Object.values(counts).reduce((total, count) => total + count, 0)

/** @param {Record<string, number>} counts @returns {string} with their reasons: 3 (malformed 2, too_large 1) */
function reasons(counts) {
  const parts = Object.entries(counts).filter(([, count]) => count > 0)
  if (parts.length === 0) return '0'
  return `${short(sum(counts))} (${parts.map(([name, count]) => `${name} ${short(count)}`).join(', ')})`
}

/**
 * A column of figures.
 * @template R
 * @param {string} label @param {string} hint @param {(row: R) => number | null} value null: unknown
 * @param {(value: number) => string} [text] @param {string} [alarm] class of what is not 0
 * @returns {TableColumn<R>}
 */
const figure = (label, hint, value, text = short, alarm = '') => ({
  label,
  hint,
  value: row => value(row) ?? -1,
  text: row => {
    const figure = value(row)
    return figure === null ? UNKNOWN : text(figure)
  },
  tone: row => ((value(row) ?? 0) > 0 ? alarm : ''),
})

/** @param {number} time ms @returns {string} nothing for 0 */
const time = time => (time === 0 ? UNKNOWN : ms(time))

/** @type {TableColumn<ConsumerFigures>[]} */
const CONSUMERS = [
  { label: 'Consumer', words: true, value: ({ name }) => name, tone: () => 'name' },
  { label: 'Type', words: true, value: ({ type }) => type },
  figure('Processed', 'messages that are done, skipped ones included', ({ processed }) => processed),
  {
    label: 'Skipped',
    words: true,
    hint: 'bad messages, which are not tried again, by reason',
    value: ({ skipped }) => sum(skipped),
    text: ({ skipped }) => reasons(skipped),
    tone: ({ skipped }) => (sum(skipped) > 0 ? 'warn' : ''),
  },
  figure('Errors', 'failed tries, and failures of the source', ({ errors }) => errors),
  figure('Retries', 'failed tries of messages that are tried again', ({ retries }) => retries),
  figure('Age', 'of the oldest message in work, ms', ({ age }) => age, time),
  figure('Back-off', 'before the next try of what fails, ms', ({ backoff }) => backoff, time, 'warn'),
  figure('Lag', 'messages that wait at the source, where it says so', ({ lag }) => lag),
]

/** @type {TableColumn<RepublisherFigures>[]} */
const REPUBLISHERS = [
  { label: 'Republisher', words: true, value: ({ name }) => name, tone: () => 'name' },
  {
    label: 'State',
    words: true,
    value: ({ up }) => (up ? 'up' : 'down'),
    tone: ({ up }) => (up ? 'good' : 'bad'),
  },
  figure('Sent', 'with repeats', ({ sent }) => sent),
  figure('Confirmed', 'taken by the queue', ({ confirmed }) => confirmed),
  figure('Returned', 'no queue takes them', ({ returned }) => returned, short, 'warn'),
  figure('Refused', 'by the destination', ({ refused }) => refused, short, 'warn'),
  figure('Dropped', 'the queue in the gateway was full', ({ dropped }) => dropped, short, 'warn'),
  figure('Queue', 'messages without an outcome', ({ queued }) => queued),
  figure('Bytes', 'memory of the queue, about', one => one.queued_bytes, bytes),
  figure('Age', 'of the oldest message in the queue, ms', ({ age }) => age, time),
]

/** The tables of consumers and republishers, if there are any. */
export class Queues {
  #consumers = new Table(byId('consumers'), 'Consumers', CONSUMERS, { key: ({ name }) => name })
  #republishers = new Table(byId('republishers'), 'Republishers', REPUBLISHERS, { key: ({ name }) => name })

  /** @param {Snapshot} snapshot an older gateway has neither */
  show({ consumers, republishers }) {
    const list = consumers?.list ?? []
    byId('consumers-card').hidden = list.length === 0
    byId('consumers-count').textContent = plural(list.length, 'consumer')
    this.#consumers.show(list)
    byId('republishers-card').hidden = !republishers?.length
    byId('republishers-count').textContent = plural(republishers?.length ?? 0, 'republisher')
    this.#republishers.show(republishers ?? [])
  }
}
