import {
  busy,
  bytes,
  count,
  duration,
  gcPause,
  health,
  healthSpan,
  ms,
  percent,
  perSecond,
  quantity,
} from '../format.js'
import { choose } from '../view/table.js'

/** @import { Snapshot, WorkerSample, WorkerView } from '../../src/stats/schema.js' */
/** @import { Line } from '../terminal/line.js' */

/**
 * @typedef {{unicode: boolean, colors: boolean}} Look
 * @typedef {WorkerSample | Snapshot['totals']} Figures of one worker, or of all
 *
 * @typedef {object} Column
 * @property {string} name that of the sort, if any
 * @property {string} title
 * @property {string} group title above it
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
 * @param {object} column @param {string} column.name @param {string} [column.title] @param {string} [column.group]
 * @param {number} column.width @param {number} column.rank
 * @param {(figures: Figures, interval: number) => number} column.value interval: ms
 * @param {(value: number) => string} column.format
 * @param {keyof typeof import('../../src/stats/limits.js').LIMITS} [column.limit]
 * @param {boolean} [column.judged] whether the total has a health, too
 * @param {boolean} [column.green] whether a healthy figure is green
 * @returns {Column}
 */
function figure({
  name,
  title = name,
  group = '',
  width,
  rank,
  value,
  format,
  limit,
  judged = true,
  green = false,
}) {
  const shown = (
    /** @type {number} */ number,
    /** @type {Look} */ { colors },
    /** @type {boolean} */ own,
  ) => {
    if (limit === undefined) return plain(format(number))
    if (!own && !judged) return plain(unmarked(format(number), colors))
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
    cell: (sample, look) => shown(value(sample, sample.interval), look, true),
    total: ({ totals, interval }, look) => shown(value(totals, interval), look, false),
  }
}

/**
 * @param {string} name @param {string} title @param {number} width @param {number} rank
 * @param {(sample: WorkerSample, view: WorkerView) => string} cell @param {(snapshot: Snapshot) => string} [total]
 * @returns {Column}
 */
const text = (name, title, width, rank, cell, total = () => '') => ({
  name,
  title,
  group: '',
  width,
  rank,
  marked: false,
  cell: (sample, _, view) => plain(cell(sample, view)),
  total: snapshot => plain(total(snapshot)),
})

/** @param {string} text @returns {Line} */
const plain = text => [[text, 'value']]

/** @param {string} text @param {boolean} colors @returns {string} in line with figures that have a mark */
const unmarked = (text, colors) => (colors ? text : `${text} `)

/**
 * A healthy event-loop delay is green: operators look for it first.
 * @param {'avg' | 'p90' | 'max'} name @param {'tickAvg' | 'tickP90' | 'tickMax'} limit
 */
const tick = (name, limit) =>
  figure({
    name,
    group: 'delay, ms',
    width: 4,
    rank: 0,
    limit,
    green: true,
    format: ms,
    value: ({ loop }) => loop.ticks[name],
  })

/** @param {number} used @param {number} total @returns {string} in the unit of the total: 12.3/45.6M */
function usedOf(used, total) {
  const whole = bytes(total)
  const part = bytes(used)
  return `${part.at(-1) === whole.at(-1) ? part.slice(0, -1) : part}/${whole}`
}

const messages = { group: 'msg/s', width: 5, format: count }
const share = { width: 4, rank: 1, format: percent }

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
    ({ workers }) => `${workers.reduce((sum, { deaths }) => sum + deaths, 0)}`,
  ),
  figure({ name: 'cpu', ...share, limit: 'cpu', judged: false, value: ({ cpu }) => busy(cpu) }),
  figure({ name: 'rss', width: 5, rank: 2, format: bytes, value: ({ memory }) => memory.rss }),
  figure({
    name: 'clients',
    width: 7,
    rank: 0,
    format: quantity,
    value: ({ connections }) => connections.connected,
  }),
  figure({
    name: 'accepts',
    title: 'new/s',
    width: 5,
    rank: 9,
    format: count,
    value: ({ counts }, interval) => perSecond(counts.accepts, interval),
  }),
  figure({
    name: 'subscriptions',
    title: 'subs',
    width: 7,
    rank: 11,
    format: quantity,
    value: ({ subscriptions }) => subscriptions,
  }),
  figure({
    name: 'channels',
    title: 'chans',
    width: 7,
    rank: 12,
    format: quantity,
    value: ({ channels }) => channels,
  }),
  {
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
      plain(unmarked(usedOf(memory.heap_used, memory.heap_total), colors)),
  },
  figure({ name: 'loop', ...share, limit: 'loop', value: ({ loop }) => loop.utilization }),
  tick('avg', 'tickAvg'),
  tick('p90', 'tickP90'),
  tick('max', 'tickMax'),
  figure({
    name: 'in',
    ...messages,
    rank: 2,
    value: ({ counts }, interval) => perSecond(counts.in.messages, interval),
  }),
  figure({
    name: 'out',
    ...messages,
    rank: 1,
    value: ({ counts }, interval) => perSecond(counts.out.messages, interval),
  }),
  figure({
    name: 'bytes',
    title: 'bytes/s',
    group: 'out',
    width: 7,
    rank: 10,
    format: bytes,
    value: ({ counts }, interval) => perSecond(counts.out.bytes, interval),
  }),
  figure({
    name: 'gc',
    group: 'ms/s',
    width: 4,
    rank: 2,
    limit: 'gc',
    judged: false,
    format: ms,
    value: ({ gc }, interval) => perSecond(gcPause(gc), interval),
  }),
  figure({ name: 'outbox', width: 6, rank: 4, format: bytes, value: ({ outbox }) => outbox.bytes }),
  figure({
    name: 'largest',
    width: 7,
    rank: 8,
    limit: 'outbox',
    format: bytes,
    value: ({ outbox }) => outbox.largest,
  }),
]

/** The sparkline of delays: its width, and the minimum width of the terminal. */
const TREND = { least: 13, most: 60, from: 100 }

/** @param {Snapshot} snapshot @param {number} width @param {Look} look @returns {Chosen} */
export function chosenColumns({ workers }, width, { colors }) {
  const pid = Math.max(5, ...workers.map(({ sample }) => `${sample?.pid ?? ''}`.length))
  const columns = COLUMNS.map(column => {
    if (column.name === 'pid') return { ...column, width: pid }
    return column.marked && !colors ? { ...column, width: column.width + 1 } : column
  })
  const kept = width >= TREND.from ? TREND.least + 1 : 0
  const chosen = choose(columns, width - kept)
  const rest = width - chosen.used - chosen.gap
  const trend = kept > 0 && rest >= TREND.least ? Math.min(TREND.most, rest) : 0
  return { ...chosen, trend }
}
