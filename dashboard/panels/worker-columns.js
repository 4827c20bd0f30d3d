import {
  busy,
  bytes,
  count,
  duration,
  gcPause,
  health,
  healthy,
  ms,
  people,
  percent,
  perSecond,
} from '../format.js'
import { choose } from '../view/table.js'

/**
 * @typedef {import('./panel.js').Line} Line
 * @typedef {import('../../src/stats/schema.js').WorkerSample} WorkerSample
 * @typedef {import('../../src/stats/schema.js').WorkerView} WorkerView
 * @typedef {import('../../src/stats/schema.js').Snapshot} Snapshot
 * @typedef {{unicode: boolean, colors: boolean}} Look
 *
 * @typedef {object} Column
 * @property {string} name that of the sort, where there is one
 * @property {string} title
 * @property {string} group stands above it
 * @property {number} width columns
 * @property {boolean} [marked] whether it needs room for a mark where there are no colours
 * @property {number} rank those with a high one go first when the terminal is narrow
 * @property {(sample: WorkerSample, look: Look, view: WorkerView) => Line} cell
 * @property {(snapshot: Snapshot, look: Look) => Line} total
 *
 * @typedef {import('../view/table.js').Chosen<Column> & {trend: number}} Chosen trend: width of what is left behind the columns for a
 *   picture of the event-loop delay; 0: nothing is
 */

/** @param {string} text @returns {Line} */
const plain = text => [[text, 'value']]

/**
 * @param {string} name
 * @param {string} title
 * @param {string} group
 * @param {number} width
 * @param {number} rank
 * @param {(sample: WorkerSample, view: WorkerView) => string} cell
 * @param {(snapshot: Snapshot) => string} total
 * @returns {Column}
 */
const text = (name, title, group, width, rank, cell, total) => ({
  name,
  title,
  group,
  width,
  rank,
  cell: (sample, _, view) => plain(cell(sample, view)),
  total: snapshot => plain(total(snapshot)),
})

/**
 * A figure that is healthy or not.
 * @param {string} name
 * @param {string} title
 * @param {string} group
 * @param {number} width
 * @param {number} rank
 * @param {keyof typeof import('../../src/stats/limits.js').LIMITS} limit
 * @param {(value: number) => string} format
 * @param {(sample: WorkerSample) => number} value
 * @param {(snapshot: Snapshot) => number} total
 * @param {boolean} [judged] whether the total is, too
 * @returns {Column}
 */
const vital = (name, title, group, width, rank, limit, format, value, total, judged = true) => ({
  name,
  title,
  group,
  width,
  rank,
  marked: true,
  cell: (sample, look) => [healthy(format(value(sample)), health(value(sample), limit), look.colors)],
  total: (snapshot, look) =>
    judged
      ? [healthy(format(total(snapshot)), health(total(snapshot), limit), look.colors)]
      : plain(`${format(total(snapshot))}${look.colors ? '' : ' '}`),
})

/**
 * The event-loop delay is green when it is well: it is what one looks for first.
 * @param {'avg' | 'p90' | 'max'} which
 * @param {'tickAvg' | 'tickP90' | 'tickMax'} limit
 * @returns {Column}
 */
const tick = (which, limit) => {
  const shownAs = (/** @type {number} */ value, /** @type {Look} */ { colors }) => {
    const state = health(value, limit)
    return /** @type {Line} */ ([[healthy(ms(value), state, colors)[0], state]])
  }
  return {
    name: which,
    title: which,
    group: 'delay, ms',
    width: 4,
    rank: 0,
    marked: true,
    cell: ({ loop }, look) => shownAs(loop.ticks[which], look),
    total: ({ totals }, look) => shownAs(totals.loop.ticks[which], look),
  }
}

/**
 * @param {number} used
 * @param {number} total
 * @returns {string} in the unit of the total: 12.3/45.6M
 */
function usedOf(used, total) {
  const whole = bytes(total)
  const part = bytes(used)
  if (part.at(-1) === whole.at(-1)) return `${part.slice(0, -1)}/${whole}`
  return `${part}/${whole}`
}

/** @type {readonly Column[]} in the order of the screen */
const COLUMNS = [
  text(
    'worker',
    '#',
    '',
    3,
    0,
    ({ index }) => index.toString(),
    () => 'all',
  ),
  text(
    'pid',
    'pid',
    '',
    5,
    3,
    ({ pid }) => pid.toString(),
    () => '',
  ),
  text(
    'age',
    'up',
    '',
    8,
    14,
    ({ uptime }) => duration(uptime),
    () => '',
  ),
  text(
    'died',
    'died',
    '',
    4,
    13,
    (_, { deaths }) => deaths.toString(),
    ({ workers }) => workers.reduce((sum, { deaths }) => sum + deaths, 0).toString(),
  ),
  vital(
    'cpu',
    'cpu',
    '',
    4,
    1,
    'cpu',
    percent,
    ({ cpu }) => busy(cpu),
    ({ totals }) => busy(totals.cpu),
    false,
  ),
  text(
    'rss',
    'rss',
    '',
    5,
    2,
    ({ memory }) => bytes(memory.rss),
    ({ totals }) => bytes(totals.memory.rss),
  ),
  text(
    'clients',
    'clients',
    '',
    7,
    0,
    ({ connections }) => people(connections.connected),
    ({ totals }) => people(totals.connections.connected),
  ),
  text(
    'accepts',
    'new/s',
    '',
    5,
    9,
    ({ counts, interval }) => count(perSecond(counts.accepts, interval)),
    ({ totals, interval }) => count(perSecond(totals.counts.accepts, interval)),
  ),
  text(
    'subscriptions',
    'subs',
    '',
    7,
    11,
    ({ subscriptions }) => people(subscriptions),
    ({ totals }) => people(totals.subscriptions),
  ),
  text(
    'channels',
    'chans',
    '',
    7,
    12,
    ({ channels }) => people(channels),
    ({ totals }) => people(totals.channels),
  ),
  {
    name: 'heap',
    title: 'used/total',
    group: 'heap',
    width: 11,
    rank: 1,
    marked: true,
    cell: ({ memory: { heap_used, heap_total, heap_limit } }, { colors }) => [
      healthy(usedOf(heap_used, heap_total), health(heap_used / heap_limit, 'full'), colors),
    ],
    total: ({ totals: { memory } }, { colors }) =>
      plain(`${usedOf(memory.heap_used, memory.heap_total)}${colors ? '' : ' '}`),
  },
  vital(
    'loop',
    'loop',
    '',
    4,
    1,
    'loop',
    percent,
    s => s.loop.utilization,
    ({ totals }) => totals.loop.utilization,
  ),
  tick('avg', 'tickAvg'),
  tick('p90', 'tickP90'),
  tick('max', 'tickMax'),
  text(
    'in',
    'in',
    'msg/s',
    5,
    2,
    ({ counts, interval }) => count(perSecond(counts.in.messages, interval)),
    ({ totals, interval }) => count(perSecond(totals.counts.in.messages, interval)),
  ),
  text(
    'out',
    'out',
    'msg/s',
    5,
    1,
    ({ counts, interval }) => count(perSecond(counts.out.messages, interval)),
    ({ totals, interval }) => count(perSecond(totals.counts.out.messages, interval)),
  ),
  text(
    'bytes',
    'bytes/s',
    'out',
    7,
    10,
    ({ counts, interval }) => bytes(perSecond(counts.out.bytes, interval)),
    ({ totals, interval }) => bytes(perSecond(totals.counts.out.bytes, interval)),
  ),
  vital(
    'gc',
    'gc',
    'ms/s',
    4,
    2,
    'gc',
    ms,
    ({ gc, interval }) => perSecond(gcPause(gc), interval),
    ({ totals, interval }) => perSecond(gcPause(totals.gc), interval),
    false,
  ),
  text(
    'outbox',
    'outbox',
    '',
    6,
    4,
    ({ outbox }) => bytes(outbox.bytes),
    ({ totals }) => bytes(totals.outbox.bytes),
  ),
  vital(
    'largest',
    'largest',
    '',
    7,
    8,
    'outbox',
    bytes,
    ({ outbox }) => outbox.largest,
    ({ totals }) => totals.outbox.largest,
  ),
]

/** Of the picture of delays: columns, and of the terminal from which on it is there. */
const TREND = { least: 13, most: 60, from: 100 }

/**
 * @param {Snapshot} snapshot
 * @param {number} width columns of the terminal
 * @param {Look} look
 * @returns {Chosen} what of the table fits
 */
export function chosenColumns({ workers }, width, { colors }) {
  const pid = Math.max(5, ...workers.map(({ sample }) => sample?.pid.toString().length ?? 0))
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
