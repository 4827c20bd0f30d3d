import { ms, short, shortBytes, whole } from '../../src/base/format.js'
import { metricAt } from '../../src/metrics/table.js'
import { clip, pad, tableRow } from '../terminal/line.js'
import { fitItems, named, rule } from '../view/parts.js'
import { shown } from '../view/state.js'
import { fitting } from '../view/table.js'

/** @import { ConsumerFigures, RepublisherFigures, Snapshot } from '../../src/metrics/schema.js' */
/** @import { Panel, State } from '../state.js' */
/** @import { Line } from '../terminal/line.js' */

/**
 * @template Row
 * @typedef {{title: string, width: number, rank: number, text: (row: Row) => string, style: (row: Row) => string}} Column
 */

/** @param {Record<string, number>} counts */
const sum = counts => Object.values(counts).reduce((total, count) => total + count, 0)

/** @param {number} time ms; 0: nothing */
const age = time => (time === 0 ? '-' : ms(time))

/** @param {number} value @returns {string} style of a fault count */
const alarm = value => (value > 0 ? 'warn' : 'value')

/**
 * @template Row
 * @param {string} path of the metric @param {number} rank @param {(row: Row) => string} text
 * @param {{style?: Column<Row>['style'], title?: string, width?: number}} [options] @returns {Column<Row>}
 */
function column(path, rank, text, { style = () => 'value', ...options } = {}) {
  const { title = metricAt(path).label, width = Math.max(5, title.length) } = options
  return { title, width, rank, text, style }
}

/** @template Row @param {string} path @param {number} rank @param {(row: Row) => number} value */
const fault = (path, rank, value) =>
  column(path, rank, (/** @type {Row} */ row) => short(value(row)), { style: row => alarm(value(row)) })

const AGE = { title: `${metricAt('republishers[].age').label}, ms` }

/** @type {readonly Column<ConsumerFigures>[]} */
const CONSUMERS = [
  column('consumers.list[].type', 5, ({ type }) => type, { width: 14 }),
  column('consumers.list[].processed', 0, ({ processed }) => short(processed)),
  fault('consumers.list[].skipped.<reason>', 0, ({ skipped }) => sum(skipped)),
  column('consumers.list[].errors', 0, ({ errors }) => short(errors)),
  column('consumers.list[].retries', 4, ({ retries }) => short(retries)),
  column('consumers.list[].age', 1, one => age(one.age), AGE),
  column('consumers.list[].backoff', 2, ({ backoff }) => age(backoff), {
    style: ({ backoff }) => alarm(backoff),
  }),
  column('consumers.list[].lag', 0, ({ lag }) => short(lag)),
]

/** @type {readonly Column<RepublisherFigures>[]} */
const REPUBLISHERS = [
  column('republishers[].up', 3, ({ up }) => (up ? 'up' : 'down'), {
    style: ({ up }) => (up ? 'value' : 'bad'),
  }),
  column('republishers[].sent', 2, ({ sent }) => short(sent)),
  column('republishers[].confirmed', 0, ({ confirmed }) => short(confirmed)),
  fault('republishers[].returned', 4, ({ returned }) => returned),
  fault('republishers[].refused', 3, ({ refused }) => refused),
  fault('republishers[].dropped', 0, ({ dropped }) => dropped),
  column('republishers[].queued', 0, ({ queued }) => short(queued)),
  column('republishers[].queued_bytes', 5, one => shortBytes(one.queued_bytes)),
  column('republishers[].age', 1, one => age(one.age), AGE),
]

const NAME = { min: 13, max: 28 }

/**
 * @template {{name: string}} Row
 * @param {string} title @param {Row[]} rows @param {readonly Column<Row>[]} all @param {number} width
 * @param {(row: Row) => boolean} isBad @returns {Line[]}
 */
function block(title, rows, all, width, isBad) {
  if (rows.length === 0) return []
  const list = fitting(all, width - NAME.min - 2)
  const used = list.reduce((total, column) => total + column.width + 1, 0)
  const room = Math.min(NAME.max, width - used - 2)
  const line = (/** @type {Line} */ name, /** @type {Line[]} */ cells) =>
    /** @type {Line} */ ([[' ', ''], ...pad(name, room, 'left', '…'), [' ', ''], ...tableRow(cells, list)])
  const cut = (/** @type {string} */ text, /** @type {number} */ max) =>
    clip([[text, 'value']], max)[0]?.[0] ?? ''
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
          list.map(({ text, style, width }) => [[cut(text(row), width), style(row)]]),
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

/** Consumers and republishers, if configured. @type {Panel} */
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
    return { min: 1, max: state.size.rows < 30 ? 1 : Math.min(all, Math.floor(state.size.rows / 3)) }
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
