// Summary of a run: peaks, medians of the steady state, bytes per connection. Pure functions over columns.

import { count } from '../../base/format.js'
import { derive, ENOUGH, idleRows, isKnown, maximum, median } from '../web/derive.js'

/** @import { Columns, Values } from '../web/derive.js' */

/** @typedef {Record<string, number>} Figures by column; NaN: unknown */

/** Steady state: connections within this share below the run's maximum. */
const STEADY = 0.02
/** Minimum length of a steady period; otherwise the busiest part is used. */
const STEADY_ROWS = 10
/** Minimum rows of the busiest part; or a tenth of the run. */
const BUSIEST_ROWS = 60

/**
 * @typedef {object} Stretch
 * @property {number} from row
 * @property {number} to row after the last
 * @property {'steady' | 'busiest'} kind steady: connections stayed within 2 % of their maximum
 * @property {number} seconds
 */

/**
 * @typedef {object} Summary
 * @property {number} rows
 * @property {number} start unix ms
 * @property {number} seconds
 * @property {Figures} peaks maximum of each column, including derived ones
 * @property {Stretch} stretch
 * @property {Figures} steady medians over the stretch
 * @property {Figures} sums of counts over the run
 * @property {ConnectionMemory} connection in the stretch
 *
 * @typedef {object} ConnectionMemory bytes of one connection, above the idle gateway; NaN: unknown
 * @property {number} heap
 * @property {number} native
 * @property {number} user
 * @property {number} kernel
 * @property {number} total
 * @property {string} unknown why `user` is unknown; '': known, or the file has no memory data
 */

/** Columns that may be summed over time. */
const COUNTS = Object.freeze([
  'accepts',
  'closes',
  'errors',
  'unrecovered',
  'messages_in',
  'messages_out',
  'publishes',
  'deliveries',
  'listen_overflows',
  'map_publishes',
  'map_removals',
  'map_expiries',
  'gc_minor',
  'gc_minor_ms',
  'gc_major',
  'gc_major_ms',
  'gc_incremental_ms',
  'gc_weak_ms',
])

/** @param {Values} values @param {number} from @param {number} to */
const part = (values, from, to) => (from === 0 && to === values.length ? values : values.slice(from, to))

/**
 * The longest period with connections within 2 % of the run's maximum.
 * @param {Values} connections
 * @returns {[number, number] | null} from, to (excluded); null if too short
 */
export function steadyRows(connections) {
  const max = maximum(connections)
  if (!(max > 0)) return null
  const min = max * (1 - STEADY)
  /** @type {[number, number]} */
  let best = [0, 0]
  let from = 0
  for (let row = 0; row <= connections.length; row++) {
    const value = row < connections.length ? connections[row] : Number.NEGATIVE_INFINITY
    // Unknown values do not end a period.
    if (!isKnown(value) || value >= min) continue
    if (row - from > best[1] - best[0]) best = [from, row]
    from = row + 1
  }
  return best[1] - best[0] >= STEADY_ROWS ? best : null
}

/** The part of a run with the highest sum. @param {Values} values @returns {[number, number]} from, to (excluded) */
export function busiestRows(values) {
  const { length } = values
  const width = Math.min(length, Math.max(BUSIEST_ROWS, Math.floor(length / 10)))
  const at = (/** @type {number} */ row) => (isKnown(values[row]) ? Number(values[row]) : 0)
  let sum = 0
  for (let row = 0; row < width; row++) sum += at(row)
  let [max, best] = [sum, 0]
  for (let row = width; row < length; row++) {
    sum += at(row) - at(row - width)
    if (sum > max) [max, best] = [sum, row - width + 1]
  }
  return [best, best + width]
}

/** @param {Columns} columns @param {number} rows @returns {Stretch} */
function stretchOf(columns, rows) {
  const { connections, messages_out_s: messages, cpu_pct: cpu } = columns
  const steady = connections ? steadyRows(connections) : null
  const busy = [messages, connections, cpu].find(values => values && maximum(values) > 0)
  const [from, to] = steady ?? (busy ? busiestRows(busy) : [0, rows])
  const { time } = columns
  const seconds = to > from ? (Number(time[to - 1]) - Number(time[from])) / 1000 : 0
  return { from, to, kind: steady === null ? 'busiest' : 'steady', seconds }
}

/**
 * @param {Columns} columns
 * @param {string} name
 * @param {Stretch} stretch
 * @returns {number} per connection; NaN: unknown
 */
function growth(columns, name, { from, to }) {
  const { connections, [name]: values } = columns
  const idle = connections ? idleRows(connections) : null
  if (values === undefined || idle === null || idle[1] > from) return Number.NaN
  const open = median(part(connections, from, to))
  const more = median(part(values, from, to)) - median(part(values, ...idle))
  // Below the idle level, GC freed more than the connections used.
  return open > 0 && more > 0 ? more / open : Number.NaN
}

/** @param {string} unknown @returns {ConnectionMemory} */
function nothingOf(unknown) {
  const [heap, native, user, kernel, total] = new Array(5).fill(Number.NaN)
  return { heap, native, user, kernel, total, unknown }
}

/** @param {Columns} columns @param {Stretch} stretch @returns {ConnectionMemory} */
function connectionOf(columns, stretch) {
  if (!columns.rss_bytes && !columns.bytes_per_connection) return nothingOf('')
  // As in the charts: with fewer, the result is noise of the idle gateway.
  if (!columns.connections || maximum(columns.connections) < ENOUGH)
    return nothingOf(`fewer than ${count(ENOUGH)} connections`)
  const { from, to } = stretch
  const measured = (/** @type {string} */ name) =>
    columns[name] ? median(part(columns[name], from, to)) : Number.NaN
  const either = (/** @type {number} */ first, /** @type {number} */ second) =>
    Number.isNaN(first) ? second : first
  let heap = growth(columns, 'heap_total_bytes', stretch)
  let native = growth(columns, 'native_bytes', stretch)
  let grown = growth(columns, 'rss_bytes', stretch)
  // A shrinking heap hides connection memory in the total.
  const heapShrank = columns.heap_total_bytes && Number.isNaN(heap)
  const nativeShrank = columns.native_bytes && Number.isNaN(native)
  if (heapShrank || nativeShrank) heap = native = grown = Number.NaN
  const user = either(grown, measured('bytes_per_connection'))
  const kernel = either(growth(columns, 'kernel_bytes', stretch), measured('kernel_bytes_per_connection'))
  const idle = idleRows(columns.connections)
  const why = idle === null || idle[1] > from ? 'no idle baseline' : 'the gateway freed memory'
  return { heap, native, user, kernel, total: user + kernel, unknown: Number.isNaN(user) ? why : '' }
}

/** @param {Columns} columns of a run, by CSV name, `time` ascending @returns {Summary} */
export function summarize(columns) {
  const all = derive(columns)
  const { time } = all
  const rows = time.length
  const stretch = stretchOf(all, rows)
  /** @type {Summary} */
  const summary = {
    rows,
    start: Number(time[0]),
    seconds: (Number(time[rows - 1]) - Number(time[0])) / 1000,
    peaks: {},
    stretch,
    steady: {},
    sums: {},
    connection: connectionOf(all, stretch),
  }
  for (const [name, values] of Object.entries(all)) {
    const max = maximum(values)
    summary.peaks[name] = Number.isFinite(max) ? max : Number.NaN
    summary.steady[name] = median(part(values, stretch.from, stretch.to))
  }
  for (const name of COUNTS) {
    const values = all[name]
    let sum = values ? 0 : Number.NaN
    for (let row = 0; row < (values?.length ?? 0); row++) if (isKnown(values[row])) sum += Number(values[row])
    summary.sums[name] = sum
  }
  return summary
}
