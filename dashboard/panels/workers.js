import { duration, ms, quantity, share, short, shortBytes, whole } from '../../src/base/format.js'
import { metricAt } from '../../src/metrics/table.js'
import { sparkline } from '../chart.js'
import { figureAt, gcPause, health, healthSpan, perSecond, totalCpu } from '../health.js'
import { workerAt } from '../picture.js'
import { shown, sortRows } from '../view/state.js'
import { choose, FRAME_ROWS, table } from '../view/table.js'

/** @import { Snapshot, WorkerSample, WorkerView } from '../../src/metrics/schema.js' */
/** @import { Panel, State } from '../state.js' */
/** @import { Line } from '../terminal/line.js' */

/** @typedef {State['look']} Look */
/** @typedef {WorkerSample | Snapshot['totals']} Figures of one worker, or of all */

/**
 * @typedef {import('../view/table.js').Column & {
 *   marked: boolean,
 *   cell: (sample: WorkerSample, look: Look, view: WorkerView) => Line,
 *   total: (snapshot: Snapshot, look: Look) => Line,
 *   value: (sample: WorkerSample) => number,
 * }} Column marked: has a health mark on terminals without colours
 */

/**
 * @typedef {object} FigureOptions
 * @property {string} [title] default: the name
 * @property {string} [group]
 * @property {Parameters<typeof health>[1]} [limit] colours the figure
 * @property {boolean} [totalHealth] the limit colours the total, too
 * @property {boolean} [green] a healthy figure is green
 */

/**
 * @param {string} name @param {number} width @param {number} rank @param {(value: number) => string} format
 * @param {(figures: Figures, interval: number) => number} value interval: ms
 * @param {FigureOptions} [options] @returns {Column}
 */
function figure(name, width, rank, format, value, options = {}) {
  const { title = name, group = '', limit, totalHealth = true, green = false } = options
  /** @param {number} number @param {Look} look @param {boolean} isTotal */
  const toLine = (number, { colors }, isTotal) => {
    if (limit === undefined) return valueLine(format(number))
    if (isTotal && !totalHealth) return valueLine(alignToMarked(format(number), colors))
    const state = health(number, limit)
    const [text, style] = healthSpan(format(number), state, colors)
    return /** @type {Line} */ ([[text, green ? state : style]])
  }
  return {
    name,
    title,
    group,
    width,
    rank,
    marked: limit !== undefined,
    cell: (sample, look) => toLine(value(sample, sample.interval), look, false),
    total: ({ totals, interval }, look) => toLine(value(totals, interval), look, true),
    value: sample => value(sample, sample.interval),
  }
}

/** @param {string} path of a metric of a sample */
const labelOf = path => metricAt(`workers[].sample.${path}`).label

/**
 * @param {string} path @param {number} width @param {number} rank @param {(value: number) => string} format
 * @param {FigureOptions} [options]
 */
const metric = (path, width, rank, format, options) =>
  figure(labelOf(path), width, rank, format, figures => figureAt(figures, path), options)

/** @type {typeof metric} */
const rate = (path, width, rank, format, options) => {
  const value = (/** @type {Figures} */ figures, /** @type {number} */ interval) =>
    perSecond(figureAt(figures, path), interval)
  return figure(labelOf(path), width, rank, format, value, options)
}

/**
 * @param {string} name @param {string} title @param {number} width @param {number} rank
 * @param {(sample: WorkerSample, view: WorkerView) => string} cell
 * @param {(snapshot: Snapshot) => string} [total] @returns {Column}
 */
const text = (name, title, width, rank, cell, total = () => '') => ({
  name,
  title,
  group: '',
  width,
  rank,
  marked: false,
  cell: (sample, _, view) => valueLine(cell(sample, view)),
  total: snapshot => valueLine(total(snapshot)),
  value: ({ index }) => index,
})

/** @param {string} text @returns {Line} */
const valueLine = text => [[text, 'value']]

/** @param {string} text @param {boolean} colors @returns {string} padded to the width of text with a health mark */
const alignToMarked = (text, colors) => (colors ? text : `${text} `)

/** @param {'avg' | 'p90' | 'max'} name @param {'tickAvg' | 'tickP90' | 'tickMax'} limit */
const delay = (name, limit) =>
  metric(`loop.ticks.${name}`, 4, 0, ms, { group: 'delay, ms', limit, green: true })

/** @param {number} used @param {number} total @returns {string} in the unit of the total: 12.3/45.6M */
function usedOf(used, total) {
  const whole = shortBytes(total)
  const part = shortBytes(used)
  return `${part.at(-1) === whole.at(-1) ? part.slice(0, -1) : part}/${whole}`
}

/** @type {Column} */
const heap = {
  name: 'heap',
  title: `${labelOf('memory.heap_used')}/${labelOf('memory.heap_total')}`,
  group: 'heap',
  width: 11,
  rank: 1,
  marked: true,
  cell: ({ memory: { heap_used, heap_total, heap_limit } }, { colors }) => [
    healthSpan(usedOf(heap_used, heap_total), health(heap_used / heap_limit, 'full'), colors),
  ],
  total: ({ totals: { memory } }, { colors }) =>
    valueLine(alignToMarked(usedOf(memory.heap_used, memory.heap_total), colors)),
  value: ({ memory }) => memory.heap_used,
}

const allIndexes = () => 'all'
/** @param {Snapshot} snapshot */
const allDeaths = ({ workers }) => `${workers.reduce((sum, { deaths }) => sum + deaths, 0)}`

/** @type {readonly Column[]} in screen order */
const COLUMNS = [
  text('worker', '#', 3, 0, ({ index }) => `${index}`, allIndexes),
  text('pid', labelOf('pid'), 5, 3, ({ pid }) => `${pid}`),
  text('age', labelOf('uptime'), 8, 14, ({ uptime }) => duration(uptime)),
  text('died', metricAt('workers[].deaths').label, 4, 13, (_, { deaths }) => `${deaths}`, allDeaths),
  figure('cpu', 4, 1, share, ({ cpu }) => totalCpu(cpu), { limit: 'cpu', totalHealth: false }),
  metric('memory.rss', 5, 2, shortBytes),
  metric('connections.connected', 7, 0, quantity),
  rate('counts.accepts', 5, 9, short, { title: `${labelOf('counts.accepts')}/s` }),
  metric('subscriptions', 7, 11, quantity, { title: 'subs' }),
  metric('channels', 7, 12, quantity, { title: 'chans' }),
  heap,
  metric('loop.utilization', 4, 1, share, { limit: 'loop' }),
  delay('avg', 'tickAvg'),
  delay('p90', 'tickP90'),
  delay('max', 'tickMax'),
  rate('counts.in.messages', 5, 2, short, { group: 'msg/s' }),
  rate('counts.out.messages', 5, 1, short, { group: 'msg/s' }),
  rate('counts.out.bytes', 7, 10, shortBytes, { title: `${labelOf('counts.out.bytes')}/s`, group: 'out' }),
  figure('gc', 4, 2, ms, ({ gc }, interval) => perSecond(gcPause(gc), interval), {
    group: 'ms/s',
    limit: 'gc',
    totalHealth: false,
  }),
  metric('outbox.bytes', 6, 4, shortBytes),
  metric('outbox.largest', 7, 8, shortBytes, { limit: 'outbox' }),
]

/** Sort columns, in the order of the key `s`. */
export const SORTS = 'worker clients cpu rss heap max loop in out gc outbox'.split(' ').map(name => {
  const { value } = /** @type {Column} */ (COLUMNS.find(column => column.name === name))
  return {
    name,
    down: name !== 'worker',
    value: (/** @type {WorkerView} */ { sample }) => value(/** @type {WorkerSample} */ (sample)),
  }
})

/** @param {State} state @returns {WorkerView[]} in table order */
export const orderedWorkers = state =>
  sortRows(
    shown(state).snapshot?.workers ?? [],
    SORTS,
    state.sort,
    (a, b) => a.index - b.index,
    ({ sample }) => sample === null,
  )

/** Widths of the delay sparkline, and the minimum terminal width to show it. */
const TREND = { min: 13, max: 60, terminal: 100 }

/** @param {Snapshot} snapshot @param {number} width @param {Look} look */
function chosenColumns({ workers }, width, { colors }) {
  const pid = Math.max(5, ...workers.map(({ sample }) => `${sample?.pid ?? ''}`.length))
  const columns = COLUMNS.map(column => {
    if (column.name === 'pid') return { ...column, width: pid }
    return column.marked && !colors ? { ...column, width: column.width + 1 } : column
  })
  const reserved = width >= TREND.terminal ? TREND.min + 1 : 0
  const chosen = choose(columns, width - reserved)
  const rest = width - chosen.used - chosen.gap
  const trend = reserved > 0 && rest >= TREND.min ? Math.min(TREND.max, rest) : 0
  return { ...chosen, trend }
}

/** A row per worker, and a total. @type {Panel} */
export const workers = {
  name: 'workers',
  visible: state => state.view === 'main' && shown(state).snapshot !== null,
  rows: state => {
    const count = shown(state).snapshot?.workers.length ?? 0
    return { min: FRAME_ROWS + Math.min(1, count), max: FRAME_ROWS + count }
  },
  priority: 3,

  draw(state, width, rows) {
    const snapshot = /** @type {Snapshot} */ (shown(state).snapshot)
    const { look } = state
    const { workers, totals } = snapshot
    const { trend, ...chosen } = chosenColumns(snapshot, width, look)
    const up =
      totals.workers === workers.length ? `${workers.length}` : `${totals.workers} of ${workers.length} up`
    const overloaded = workers.filter(({ sample }) => sample?.overload).length
    return table(
      {
        title: `workers ${up}${overloaded === 0 ? '' : `, ${overloaded} overloaded`}`,
        chosen,
        sort: state.sort.column,
        rows: orderedWorkers(state),
        isSelected: ({ index }) => index === state.selected,
        absent: (view, indent) =>
          view.sample === null || view.state !== 'up' ? absentLine(view, indent) : null,
        cell: ({ cell }, view) => cell(/** @type {WorkerSample} */ (view.sample), look, view),
        total: ({ total }) => total(snapshot, look),
        tail:
          trend === 0
            ? null
            : {
                title: 'longest delay',
                width: trend,
                line: ({ index }) => [[trendOf(state, index, trend), 'series4']],
              },
      },
      width,
      rows,
    )
  },
}

/** @param {WorkerView} view @param {number} indent width of the number column and the gap @returns {Line} */
function absentLine({ index, state, age, deaths, sample }, indent) {
  const died = deaths === 0 ? '' : `, ${deaths === 1 ? 'died once' : `died ${whole(deaths)} times`}`
  const last =
    sample === null ? '' : `, last ${quantity(sample.connections.connected)} clients, pid ${sample.pid}`
  const since = state === 'starting' ? '' : ` for ${duration(age)}`
  return [
    [index.toString().padStart(indent - 1), 'value'],
    [' ', ''],
    [`${state === 'silent' ? 'no data' : state}${since}`, state === 'down' ? 'bad' : 'warn'],
    [`${last}${died}`, 'label'],
  ]
}

/** Top of the sparkline, log10 of ms; the bottom is 1 ms. */
const TREND_MAX = 3

/** @param {State} state @param {number} index @param {number} width */
function trendOf(state, index, width) {
  const values = shown(state)
    .history.slice(-width)
    .map(moment => {
      const point = workerAt(moment, index)
      return point && Math.log10(Math.max(1, point.max))
    })
  return sparkline(values, width, state.look.unicode, TREND_MAX)
}
