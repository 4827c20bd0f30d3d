// Columns derived from the CSV: rates, sums, bytes per connection.

/** @typedef {(number | null)[] | Float64Array} Values null, NaN: unknown */
/** @typedef {Record<string, Values>} Columns by name, all of one length */

/** @typedef {(columns: Columns, length: number) => Values | null} Rule null: a column is missing */

/** Interval counts converted to rates: `accepts` -> `accepts_s`. */
const RATES = Object.freeze([
  'accepts',
  'closes',
  'connects',
  'messages_in',
  'messages_out',
  'publishes',
  'deliveries',
  'errors',
  'payload_in_bytes',
  'payload_out_bytes',
])

/** Minimum connections for bytes per connection, and as a share of the maximum: memory is freed late. */
export const ENOUGH = 1000
const ENOUGH_SHARE = 0.5
/** Maximum connections of an idle gateway, as a share of the peak. */
const IDLE = 0.01
/** Rows of the idle baseline, before connections. */
const IDLE_ROWS = 30

/** @param {number | null | undefined} value @returns {value is number} */
export const isKnown = value => value !== null && value !== undefined && !Number.isNaN(value)

/** @param {number} length @param {(row: number) => number} value @returns {Float64Array} */
function fill(length, value) {
  const values = new Float64Array(length)
  for (let row = 0; row < length; row++) values[row] = value(row)
  return values
}

/** @param {Values | undefined} values @param {number} row @returns {number} */
const at = (values, row) => {
  const value = values?.[row]
  return isKnown(value) ? value : Number.NaN
}

/** @param {Values} values @returns {number} NaN: unknown */
export function median(values) {
  const known = Array.from(values).filter(isKnown)
  if (known.length === 0) return Number.NaN
  known.sort((a, b) => a - b)
  const middle = known.length >> 1
  return known.length % 2 === 1 ? known[middle] : (known[middle - 1] + known[middle]) / 2
}

/** @param {Values | undefined} values @returns {number} -Infinity: unknown */
export function maximum(values) {
  let max = Number.NEGATIVE_INFINITY
  for (let row = 0; row < (values?.length ?? 0); row++) {
    const value = at(values, row)
    if (value > max) max = value
  }
  return max
}

/**
 * The first rows, with almost no connections.
 * @param {Values} connections
 * @returns {[number, number] | null} from, to (excluded); null if there were connections from the start
 */
export function idleRows(connections) {
  const few = maximum(connections) * IDLE
  let end = 0
  while (end < connections.length && !(at(connections, end) > few)) end++
  return end === 0 ? null : [Math.max(0, end - IDLE_ROWS), end]
}

/**
 * Growth of a column above the idle baseline, per connection.
 * @param {Values} values @param {Values} connections @param {[number, number] | null} idle
 * @returns {Float64Array | null} null: unknown
 */
function perConnection(values, connections, idle) {
  const min = minConnections(connections)
  if (idle === null || maximum(connections) < min) return null
  const base = median(values.slice(...idle))
  if (Number.isNaN(base)) return null
  return fill(connections.length, row => {
    const open = at(connections, row)
    return open >= min ? Math.max(0, at(values, row) - base) / open : Number.NaN
  })
}

/** @param {Values} connections */
const minConnections = connections => Math.max(ENOUGH, maximum(connections) * ENOUGH_SHARE)

/** @param {string} measured column @param {string} otherwise column to derive it from @returns {Rule} */
const measuredOr = (measured, otherwise) => (columns, length) => {
  const { connections, [measured]: values } = columns
  if (values === undefined || connections === undefined || !(maximum(values) > 0))
    return perConnectionOf(otherwise)(columns, length)
  const min = minConnections(connections)
  return fill(length, row => (at(connections, row) >= min ? at(values, row) : Number.NaN))
}

/** The sum; unknown values count 0 unless all are unknown. @param {string[]} names @returns {Rule} */
const sumOf = names => (columns, length) => {
  const parts = names.filter(name => columns[name] !== undefined).map(name => columns[name])
  if (parts.length === 0) return null
  return fill(length, row => {
    const known = parts.map(part => at(part, row))
    return known.every(Number.isNaN) ? Number.NaN : known.reduce((sum, value) => sum + (value || 0), 0)
  })
}

/** Per second, from counts over the interval. @param {Rule} rule @returns {Rule} */
const rate = rule => (columns, length) => {
  const counts = rule(columns, length)
  if (counts === null) return null
  const { interval_ms: interval } = columns
  return fill(length, row => (at(counts, row) * 1000) / (at(interval, row) || 1000))
}

/** @param {string} name @returns {Rule} */
const perConnectionOf = name => (columns, length) => {
  const { connections, [name]: values } = columns
  if (connections === undefined || values === undefined || length === 0) return null
  return perConnection(values, connections, idleRows(connections))
}

/** @type {Record<string, Rule>} ordered by dependency */
const RULES = {
  ...Object.fromEntries(RATES.map(name => [`${name}_s`, rate(columns => columns[name] ?? null)])),
  memory_bytes: sumOf(['rss_bytes', 'kernel_bytes']),
  machine_cpu_busy_pct: sumOf(['machine_cpu_user_pct', 'machine_cpu_system_pct', 'machine_cpu_steal_pct']),
  gc_minor_pause_ms: rate(sumOf(['gc_minor_ms'])),
  gc_major_pause_ms: rate(sumOf(['gc_major_ms', 'gc_incremental_ms', 'gc_weak_ms'])),
  heap_per_connection: perConnectionOf('heap_total_bytes'),
  native_per_connection: perConnectionOf('native_bytes'),
  kernel_per_connection: measuredOr('kernel_bytes_per_connection', 'kernel_bytes'),
  user_per_connection: measuredOr('bytes_per_connection', 'rss_bytes'),
  total_per_connection: (columns, length) =>
    columns.user_per_connection && columns.kernel_per_connection
      ? fill(length, row => at(columns.user_per_connection, row) + at(columns.kernel_per_connection, row))
      : null,
}

/** Adds derived columns; existing ones are kept. @param {Columns} columns @returns {Columns} */
export function derive(columns) {
  const length = columns.time?.length ?? 0
  /** @type {Columns} */
  const all = { ...columns }
  for (const [name, rule] of Object.entries(RULES)) {
    if (all[name] !== undefined) continue
    const values = rule(all, length)
    if (values !== null) all[name] = values
  }
  return all
}

/**
 * Centred moving average. The window is cut at the ends to avoid a shift.
 * @param {ArrayLike<number | null>} values null, NaN: unknown
 * @param {number} width values in a window
 * @returns {(number | null)[]}
 */
export function movingAverage(values, width) {
  const half = Math.max(0, Math.floor((width - 1) / 2))
  const { length } = values
  // Prefix sums: a window is the difference of two.
  const sums = new Float64Array(length + 1)
  const counts = new Uint32Array(length + 1)
  for (let at = 0; at < length; at++) {
    const value = values[at]
    const known = value !== null && !Number.isNaN(value)
    sums[at + 1] = sums[at] + (known ? value : 0)
    counts[at + 1] = counts[at] + (known ? 1 : 0)
  }
  return Array.from({ length }, (_, at) => {
    const from = Math.max(0, at - half)
    const to = Math.min(length, at + half + 1)
    const known = counts[to] - counts[from]
    return known === 0 ? null : (sums[to] - sums[from]) / known
  })
}
