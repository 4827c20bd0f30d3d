import { duration, ms, quantity, share, short, shortBytes, whole } from '../../src/base/format.js'
import { sparkline } from '../chart.js'
import { gcPause, health, healthSpan, perSecond, totalCpu } from '../health.js'
import { orderedWorkers, workerAt } from '../picture.js'
import { shown } from '../view/state.js'
import { choose, FRAME_ROWS, table } from '../view/table.js'

/** @import { WorkerSample, WorkerView } from '../../src/metrics/schema.js' */
/** @import { Panel, Snapshot, State } from '../state.js' */
/** @import { Line } from '../terminal/line.js' */

/**
 * @typedef {{unicode: boolean, colors: boolean}} Look
 * @typedef {WorkerSample | Snapshot['totals']} Figures of one worker, or of all
 *
 * @typedef {object} Column
 * @property {string} name key of the column, also for sorting
 * @property {string} title
 * @property {string} group title above neighbouring columns
 * @property {number} width columns
 * @property {boolean} marked needs room for a health mark on terminals without colours
 * @property {number} rank the highest are dropped first on a narrow terminal
 * @property {(sample: WorkerSample, look: Look, view: WorkerView) => Line} cell
 * @property {(snapshot: Snapshot, look: Look) => Line} total
 *
 * @typedef {import('../view/table.js').Chosen<Column> & {trend: number}} Chosen trend: width of the delay sparkline
 *   behind the columns; 0: none
 */

/**
 * A figure of each worker and of all.
 * @param {string} name @param {number} width columns @param {number} rank
 * @param {(value: number) => string} format
 * @param {(figures: Figures, interval: number) => number} value interval: ms
 * @param {object} [options] @param {string} [options.title] default: the name @param {string} [options.group]
 * @param {keyof typeof import('../../src/metrics/limits.js').LIMITS} [options.limit] colours the figure
 * @param {boolean} [options.totalHealth] whether the total is coloured by the limit, too
 * @param {boolean} [options.green] whether a healthy figure is green
 * @returns {Column}
 */
function figure(name, width, rank, format, value, options = {}) {
  const { title = name, group = '', limit, totalHealth = true, green = false } = options
  const toLine = (
    /** @type {number} */ number,
    /** @type {Look} */ { colors },
    /** @type {boolean} */ isTotal,
  ) => {
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
  }
}

/**
 * A text of each worker, optionally one of all.
 * @param {string} name @param {string} title @param {number} width @param {number} rank
 * @param {(sample: WorkerSample, view: WorkerView) => string} cell
 * @param {(snapshot: Snapshot) => string} [total]
 * @returns {Column}
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
})

/** @param {string} text @returns {Line} */
const valueLine = text => [[text, 'value']]

/** @param {string} text @param {boolean} colors @returns {string} with a blank in place of a health mark */
const alignToMarked = (text, colors) => (colors ? text : `${text} `)

/**
 * A healthy event-loop delay is green: operators look for it first.
 * @param {'avg' | 'p90' | 'max'} name @param {'tickAvg' | 'tickP90' | 'tickMax'} limit
 */
const delay = (name, limit) =>
  figure(name, 4, 0, ms, ({ loop }) => loop.ticks[name], { group: 'delay, ms', limit, green: true })

/** @param {'in' | 'out'} way @param {number} rank */
const messages = (way, rank) =>
  figure(way, 5, rank, short, ({ counts }, interval) => perSecond(counts[way].messages, interval), {
    group: 'msg/s',
  })

/** @param {number} used @param {number} total @returns {string} in the unit of the total: 12.3/45.6M */
function usedOf(used, total) {
  const whole = shortBytes(total)
  const part = shortBytes(used)
  return `${part.at(-1) === whole.at(-1) ? part.slice(0, -1) : part}/${whole}`
}

/** @type {Column} */
const heap = {
  name: 'heap',
  title: 'used/total',
  group: 'heap',
  width: 11,
  rank: 1,
  marked: true,
  cell: ({ memory: { heap_used, heap_total, heap_limit } }, { colors }) => [
    healthSpan(usedOf(heap_used, heap_total), health(heap_used / heap_limit, 'full'), colors),
  ],
  total: ({ totals: { memory } }, { colors }) =>
    valueLine(alignToMarked(usedOf(memory.heap_used, memory.heap_total), colors)),
}

/** @param {WorkerView[]} workers */
const allDeaths = workers => `${workers.reduce((sum, { deaths }) => sum + deaths, 0)}`

/** @type {readonly Column[]} in the order of the screen */
const COLUMNS = [
  text(
    'worker',
    '#',
    3,
    0,
    ({ index }) => `${index}`,
    () => 'all',
  ),
  text('pid', 'pid', 5, 3, ({ pid }) => `${pid}`),
  text('age', 'up', 8, 14, ({ uptime }) => duration(uptime)),
  text(
    'died',
    'died',
    4,
    13,
    (_, { deaths }) => `${deaths}`,
    ({ workers }) => allDeaths(workers),
  ),
  figure('cpu', 4, 1, share, ({ cpu }) => totalCpu(cpu), { limit: 'cpu', totalHealth: false }),
  figure('rss', 5, 2, shortBytes, ({ memory }) => memory.rss),
  figure('clients', 7, 0, quantity, ({ connections }) => connections.connected),
  figure('accepts', 5, 9, short, ({ counts }, span) => perSecond(counts.accepts, span), { title: 'new/s' }),
  figure('subscriptions', 7, 11, quantity, ({ subscriptions }) => subscriptions, { title: 'subs' }),
  figure('channels', 7, 12, quantity, ({ channels }) => channels, { title: 'chans' }),
  heap,
  figure('loop', 4, 1, share, ({ loop }) => loop.utilization, { limit: 'loop' }),
  delay('avg', 'tickAvg'),
  delay('p90', 'tickP90'),
  delay('max', 'tickMax'),
  messages('in', 2),
  messages('out', 1),
  figure('bytes', 7, 10, shortBytes, ({ counts }, interval) => perSecond(counts.out.bytes, interval), {
    title: 'bytes/s',
    group: 'out',
  }),
  figure('gc', 4, 2, ms, ({ gc }, interval) => perSecond(gcPause(gc), interval), {
    group: 'ms/s',
    limit: 'gc',
    totalHealth: false,
  }),
  figure('outbox', 6, 4, shortBytes, ({ outbox }) => outbox.bytes),
  figure('largest', 7, 8, shortBytes, ({ outbox }) => outbox.largest, { limit: 'outbox' }),
]

/** Width of the sparkline of delays, and the minimum width of a terminal that shows it. */
const TREND = { least: 13, most: 60, terminal: 100 }

/**
 * The columns that fit. Without colours, columns with a health mark are wider.
 * @param {Snapshot} snapshot @param {number} width @param {Look} look @returns {Chosen}
 */
function chosenColumns({ workers }, width, { colors }) {
  const pid = Math.max(5, ...workers.map(({ sample }) => `${sample?.pid ?? ''}`.length))
  const columns = COLUMNS.map(column => {
    if (column.name === 'pid') return { ...column, width: pid }
    return column.marked && !colors ? { ...column, width: column.width + 1 } : column
  })
  const reserved = width >= TREND.terminal ? TREND.least + 1 : 0
  const chosen = choose(columns, width - reserved)
  const rest = width - chosen.used - chosen.gap
  const trend = reserved > 0 && rest >= TREND.least ? Math.min(TREND.most, rest) : 0
  return { ...chosen, trend }
}

/** A row per worker, and one for all. @type {Panel} */
export const workers = {
  name: 'workers',
  visible: state => state.view === 'main' && shown(state).snapshot !== null,
  rows: state => {
    const count = shown(state).snapshot?.workers.length ?? 0
    return { least: FRAME_ROWS + Math.min(1, count), most: FRAME_ROWS + count }
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

/**
 * A worker without current figures: the reason, and its last figures.
 * @param {WorkerView} view @param {number} indent columns of its number and the gap @returns {Line}
 */
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

/** Range of the sparkline, log10 of ms: 1 to 1000 ms. */
const TREND_RANGE = { min: 0, max: 3 }

/**
 * The longest event-loop delay of each of the last seconds, on a logarithmic scale.
 * @param {State} state @param {number} index @param {number} width @returns {string}
 */
function trendOf(state, index, width) {
  const values = shown(state)
    .history.slice(-width)
    .map(moment => {
      const point = workerAt(moment, index)
      return point && Math.log10(Math.max(1, point.max))
    })
  return sparkline(values, width, state.look.unicode, TREND_RANGE)
}
