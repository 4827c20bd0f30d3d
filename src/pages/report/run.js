// A run as report data: sorted rows, a summary, and rows for the charts.

import { CHART_COLUMNS } from '../web/definitions.js'
import { derive, median } from '../web/derive.js'
import { summarize } from './summary.js'

/** @import { Columns, Values } from '../web/derive.js' */

/**
 * @typedef {object} Run
 * @property {string} label
 * @property {Record<string, string>} facts of the gateway and its machine; empty if the file has none
 * @property {number} starts gateway starts in the file
 * @property {import('./summary.js').Summary} summary
 * @property {Record<string, (number | null)[]>} columns for the charts, downsampled
 */

/**
 * Sorts rows by time and drops duplicates: files may be concatenated in any order and clocks set back.
 * @param {Columns} columns @returns {Columns}
 */
export function sortedByTime(columns) {
  const { time } = columns
  let ascending = Number(time[0]) > 0
  for (let row = 1; row < time.length && ascending; row++) {
    ascending = Number(time[row]) > Number(time[row - 1])
  }
  if (ascending) return columns
  const rows = Array.from(time, (_, row) => row).filter(row => Number(time[row]) > 0)
  rows.sort((a, b) => Number(time[a]) - Number(time[b]))
  const once = rows.filter((row, at) => at === 0 || time[row] !== time[rows[at - 1]])
  return Object.fromEntries(
    Object.entries(columns).map(([name, values]) => [
      name,
      Float64Array.from(once, row => values[row] ?? Number.NaN),
    ]),
  )
}

/**
 * @param {object} source @param {string} source.label
 * @param {Columns} source.columns of the CSV, including `time` (unix ms); at least one row
 * @param {{facts: Record<string, string>}[]} [source.facts]
 * @param {number} [source.points] maximum rows for the charts
 * @returns {Run}
 */
export function makeRun({ label, columns, facts = [], points = 1200 }) {
  const all = derive(sortedByTime(columns))
  return {
    label,
    facts: facts[facts.length - 1]?.facts ?? {},
    starts: facts.length,
    summary: summarize(all),
    columns: downsample(all, CHART_COLUMNS, points),
  }
}

/** Rounds to six digits for charts. @param {number} value @returns {number | null} */
const sixDigits = value => (Number.isFinite(value) ? Number(value.toPrecision(6)) : null)

/**
 * Inserts a row of nulls into time gaps, so that lines are interrupted.
 * @param {Columns} columns @param {readonly string[]} names @returns {Record<string, (number | null)[]>}
 */
function withGaps(columns, names) {
  const { time } = columns
  const hole = minGap(time)
  /** @type {number[]} */
  const before = []
  for (let row = 1; row < time.length; row++) {
    if (Number(time[row]) - Number(time[row - 1]) > hole) before.push(row)
  }
  /** @type {Record<string, (number | null)[]>} */
  const result = {}
  for (const name of names) {
    const values = columns[name]
    if (values === undefined) continue
    const list = Array.from(values, value => (name === 'time' ? value : sixDigits(value ?? Number.NaN)))
    for (const [done, row] of before.entries()) {
      list.splice(row + done, 0, name === 'time' ? Number(time[row - 1]) + 1 : null)
    }
    result[name] = list
  }
  return result
}

/** Minimum time between rows that counts as a gap, ms. @param {Values} time @returns {number} */
function minGap(time) {
  const steps = Float64Array.from({ length: Math.max(0, time.length - 1) }, (_, row) => {
    return Number(time[row + 1]) - Number(time[row])
  })
  return Math.max(5000, 5 * (median(steps) || 0))
}

/**
 * @param {Columns} columns @param {readonly string[]} names @param {number} max buckets
 * @returns {Record<string, (number | null)[]>} `NAME`: averages; `NAME:min`, `NAME:max`; unchanged rows if
 *   not more than `max`
 */
export function downsample(columns, names, max) {
  const { time } = columns
  const rows = time.length
  if (rows <= max) return withGaps(columns, names)
  const first = Number(time[0])
  const width = (Number(time[rows - 1]) - first + 1) / max
  // Omits empty buckets, except the first of a gap, which marks it.
  /** @type {{time: number, from: number, to: number}[]} */
  const buckets = []
  for (let bucket = 0, row = 0; bucket < max; bucket++) {
    const from = row
    const end = first + (bucket + 1) * width
    while (row < rows && Number(time[row]) < end) row++
    const wasEmpty = buckets.length > 0 && buckets[buckets.length - 1].from === buckets[buckets.length - 1].to
    if (row > from || !wasEmpty) {
      buckets.push({ time: Math.round(first + (bucket + 0.5) * width), from, to: row })
    }
  }
  /** @type {Record<string, (number | null)[]>} */
  const result = { time: buckets.map(({ time }) => time) }
  for (const name of names) {
    const values = columns[name]
    if (values === undefined || name === 'time') continue
    const [averages, lowest, highest] = [[], [], []].map(() => /** @type {(number | null)[]} */ ([]))
    for (const { from, to } of buckets) {
      const { average, min, max } = aggregate(values, from, to)
      averages.push(sixDigits(average))
      lowest.push(sixDigits(min))
      highest.push(sixDigits(max))
    }
    Object.assign(result, { [name]: averages, [`${name}:min`]: lowest, [`${name}:max`]: highest })
  }
  return result
}

/** @param {Values} values @param {number} from @param {number} to */
function aggregate(values, from, to) {
  let [sum, known, min, max] = [0, 0, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
  for (let row = from; row < to; row++) {
    const value = values[row]
    if (value === null || Number.isNaN(value)) continue
    sum += value
    known++
    if (value < min) min = value
    if (value > max) max = value
  }
  return { average: sum / known, min, max }
}
