import { ms, short, shortBytes, whole } from '../../src/base/format.js'
import { clip, pad, tableRow } from '../terminal/line.js'
import { fitItems, named, rule } from '../view/parts.js'
import { shown } from '../view/state.js'
import { fitting } from '../view/table.js'

/** @import { ConsumerFigures, RepublisherFigures } from '../../src/metrics/schema.js' */
/** @import { Panel, Snapshot, State } from '../state.js' */
/** @import { Line } from '../terminal/line.js' */

/**
 * @template Row
 * @typedef {object} Column
 * @property {string} title @property {number} width columns
 * @property {number} rank the highest are dropped first on a narrow terminal
 * @property {(row: Row) => string} text
 * @property {(row: Row) => string} [style] of the text
 */

/** @param {Record<string, number>} counts */
const sum = counts => Object.values(counts).reduce((total, count) => total + count, 0)

/** @param {number} time ms; 0: nothing */
const age = time => (time === 0 ? '-' : ms(time))

/** @param {number} value @returns {string} style of what should be 0 */
const alarm = value => (value > 0 ? 'warn' : 'value')

/**
 * @template Row
 * @param {string} title @param {number} width @param {number} rank @param {Column<Row>['text']} text
 * @param {Column<Row>['style']} [style] @returns {Column<Row>}
 */
const column = (title, width, rank, text, style) => ({ title, width, rank, text, style })

/** @param {(row: any) => number} value that should be 0 @param {string} title @param {number} rank */
const fault = (value, title, rank) =>
  column(
    title,
    title.length,
    rank,
    row => short(value(row)),
    row => alarm(value(row)),
  )

/** @type {readonly Column<ConsumerFigures>[]} */
const CONSUMERS = [
  column('type', 14, 5, ({ type }) => type),
  column('processed', 9, 0, ({ processed }) => short(processed)),
  fault(({ skipped }) => sum(skipped), 'skipped', 0),
  column('errors', 6, 0, ({ errors }) => short(errors)),
  column('retries', 7, 4, ({ retries }) => short(retries)),
  column('age, ms', 7, 1, one => age(one.age)),
  column(
    'back-off',
    8,
    2,
    ({ backoff }) => age(backoff),
    ({ backoff }) => alarm(backoff),
  ),
  column('lag', 5, 0, ({ lag }) => short(lag)),
]

/** @type {readonly Column<RepublisherFigures>[]} */
const REPUBLISHERS = [
  column(
    'state',
    5,
    3,
    ({ up }) => (up ? 'up' : 'down'),
    ({ up }) => (up ? 'value' : 'bad'),
  ),
  column('sent', 5, 2, ({ sent }) => short(sent)),
  column('confirmed', 9, 0, ({ confirmed }) => short(confirmed)),
  fault(({ returned }) => returned, 'returned', 4),
  fault(({ refused }) => refused, 'refused', 3),
  fault(({ dropped }) => dropped, 'dropped', 0),
  column('queue', 5, 0, ({ queued }) => short(queued)),
  column('bytes', 5, 5, one => shortBytes(one.queued_bytes)),
  column('age, ms', 7, 1, one => age(one.age)),
]

/** Columns of a name. */
const NAME = { least: 13, most: 28 }

/**
 * Titles, and a row for each, the ones in trouble first.
 * @template {{name: string}} Row
 * @param {string} title @param {Row[]} rows @param {readonly Column<Row>[]} all @param {number} width
 * @param {(row: Row) => boolean} isBad @returns {Line[]}
 */
function block(title, rows, all, width, isBad) {
  if (rows.length === 0) return []
  const list = fitting(all, width - NAME.least - 2)
  const used = list.reduce((total, column) => total + column.width + 1, 0)
  const room = Math.min(NAME.most, width - used - 2)
  const layout = list.map(({ width }) => ({ width, align: /** @type {const} */ ('right') }))
  const line = (/** @type {Line} */ name, /** @type {Line[]} */ cells) =>
    /** @type {Line} */ ([[' ', ''], ...pad(name, room, 'left', '…'), [' ', ''], ...tableRow(cells, layout)])
  const cut = (/** @type {string} */ text, /** @type {number} */ most) =>
    clip([[text, 'value']], most)[0]?.[0] ?? ''
  return [
    line(
      [[title, 'header']],
      list.map(({ title }) => [[title, 'label']]),
    ),
    ...rows
      .toSorted((a, b) => Number(isBad(b)) - Number(isBad(a)))
      .map(row =>
        line(
          [[row.name, isBad(row) ? 'warn' : 'value']],
          list.map(({ text, style, width }) => [[cut(text(row), width), style?.(row) ?? 'value']]),
        ),
      ),
  ]
}

/** @param {State} state */
function figuresOf(state) {
  const { consumers, republishers } = /** @type {Snapshot} */ (shown(state).snapshot)
  return { consumers: consumers?.list ?? [], republishers: republishers ?? [] }
}

/** All in one line. @param {ReturnType<typeof figuresOf>} figures @param {number} width @returns {Line} */
function summary({ consumers, republishers }, width) {
  /** @type {Line[]} */
  const items = []
  const total = (/** @type {(one: any) => number} */ value, /** @type {object[]} */ list) =>
    list.reduce((all, one) => all + value(one), 0)
  if (consumers.length > 0) {
    const skipped = total(one => sum(one.skipped), consumers)
    const known = consumers.filter(({ lag }) => lag !== null)
    items.push(
      [[`consumers ${consumers.length}`, 'header']],
      named('skipped', [short(skipped), alarm(skipped)]),
      named('lag', short(known.length === 0 ? null : total(({ lag }) => lag, known))),
    )
  }
  if (republishers.length > 0) {
    const down = republishers.filter(({ up }) => !up).length
    const dropped = total(one => one.dropped, republishers)
    items.push(
      [[`republishers ${republishers.length}`, 'header']],
      down > 0 ? [[`${down} down`, 'bad']] : [],
      named('queue', short(total(({ queued }) => queued, republishers))),
      named('dropped', [short(dropped), alarm(dropped)]),
    )
  }
  return [[' ', ''], ...fitItems(items, width - 1)]
}

/** Consumers and republishers, when there are any. @type {Panel} */
export const queues = {
  name: 'queues',
  visible: state => {
    if (state.view !== 'main' || shown(state).snapshot === null) return false
    const { consumers, republishers } = figuresOf(state)
    return consumers.length + republishers.length > 0
  },
  rows: state => {
    const { consumers, republishers } = figuresOf(state)
    const tables = [consumers, republishers].filter(list => list.length > 0)
    const all = 1 + tables.reduce((total, list) => total + list.length + 1, 0)
    // Small terminals need their rows for the workers and a chart.
    return { least: 1, most: state.size.rows < 30 ? 1 : Math.min(all, Math.floor(state.size.rows / 3)) }
  },
  priority: 4,

  draw(state, width, rows) {
    const figures = figuresOf(state)
    if (rows === 1) return [summary(figures, width)]
    const { consumers, republishers } = figures
    const lines = [
      ...block('consumers', consumers, CONSUMERS, width, ({ backoff }) => backoff > 0),
      ...block('republishers', republishers, REPUBLISHERS, width, ({ up }) => !up),
    ]
    const room = rows - 1
    const hidden = lines.length - room + 1
    const seen =
      lines.length <= room
        ? lines
        : [...lines.slice(0, room - 1), /** @type {Line} */ ([[` … ${whole(hidden)} more lines`, 'label']])]
    return [rule('queues', width), ...seen]
  },
}
