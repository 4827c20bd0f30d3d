import { duration, ms, quantity, share, short, shortBytes } from '../../src/base/format.js'
import { gcPause, health, healthSpan, perSecond, totalCpu } from '../health.js'
import { choose } from '../view/table.js'

/** @import { Snapshot, WorkerSample, WorkerView } from '../../src/metrics/schema.js' */
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
 * @param {object} column @param {string} column.name @param {string} [column.title] @param {string} [column.group]
 * @param {number} column.width @param {number} column.rank
 * @param {(figures: Figures, interval: number) => number} column.value interval: ms
 * @param {(value: number) => string} column.format
 * @param {keyof typeof import('../../src/metrics/limits.js').LIMITS} [column.limit] colours the figure
 * @param {boolean} [column.totalHealth] whether the total is coloured by the limit, too
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
  totalHealth = true,
  green = false,
}) {
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
 * @param {object} column @param {string} column.name @param {string} [column.title]
 * @param {number} column.width @param {number} column.rank
 * @param {(sample: WorkerSample, view: WorkerView) => string} column.cell
 * @param {(snapshot: Snapshot) => string} [column.total]
 * @returns {Column}
 */
const text = ({ name, title = name, width, rank, cell, total = () => '' }) => ({
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
  const whole = shortBytes(total)
  const part = shortBytes(used)
  return `${part.at(-1) === whole.at(-1) ? part.slice(0, -1) : part}/${whole}`
}

const messages = { group: 'msg/s', width: 5, format: short }
const shareColumn = { width: 4, rank: 1, format: share }

/** @type {readonly Column[]} in the order of the screen */
const COLUMNS = [
  text({
    name: 'worker',
    title: '#',
    width: 3,
    rank: 0,
    cell: ({ index }) => `${index}`,
    total: () => 'all',
  }),
  text({ name: 'pid', width: 5, rank: 3, cell: ({ pid }) => `${pid}` }),
  text({ name: 'age', title: 'up', width: 8, rank: 14, cell: ({ uptime }) => duration(uptime) }),
  text({
    name: 'died',
    width: 4,
    rank: 13,
    cell: (_, { deaths }) => `${deaths}`,
    total: ({ workers }) => `${workers.reduce((sum, { deaths }) => sum + deaths, 0)}`,
  }),
  figure({
    name: 'cpu',
    ...shareColumn,
    limit: 'cpu',
    totalHealth: false,
    value: ({ cpu }) => totalCpu(cpu),
  }),
  figure({ name: 'rss', width: 5, rank: 2, format: shortBytes, value: ({ memory }) => memory.rss }),
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
    format: short,
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
      valueLine(alignToMarked(usedOf(memory.heap_used, memory.heap_total), colors)),
  },
  figure({ name: 'loop', ...shareColumn, limit: 'loop', value: ({ loop }) => loop.utilization }),
  delay('avg', 'tickAvg'),
  delay('p90', 'tickP90'),
  delay('max', 'tickMax'),
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
    format: shortBytes,
    value: ({ counts }, interval) => perSecond(counts.out.bytes, interval),
  }),
  figure({
    name: 'gc',
    group: 'ms/s',
    width: 4,
    rank: 2,
    limit: 'gc',
    totalHealth: false,
    format: ms,
    value: ({ gc }, interval) => perSecond(gcPause(gc), interval),
  }),
  figure({ name: 'outbox', width: 6, rank: 4, format: shortBytes, value: ({ outbox }) => outbox.bytes }),
  figure({
    name: 'largest',
    width: 7,
    rank: 8,
    limit: 'outbox',
    format: shortBytes,
    value: ({ outbox }) => outbox.largest,
  }),
]

/** Width of the sparkline of delays, and the minimum width of a terminal that shows it. */
const TREND = { least: 13, most: 60, terminal: 100 }

/**
 * The columns that fit. Without colours, columns with a health mark are wider.
 * @param {Snapshot} snapshot @param {number} width @param {Look} look @returns {Chosen}
 */
export function chosenColumns({ workers }, width, { colors }) {
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
