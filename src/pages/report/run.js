// A run as data of a report page: rows in order, a summary, and rows for the charts.

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
 * Sorts rows by time and drops duplicates: files may be concatenated in any order, and clocks set back.
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

/** Rounded to six digits, enough for a chart. @param {number} value @returns {number | null} */
const sixDigits = value => (Number.isFinite(value) ? Number(value.toPrecision(6)) : null)

/**
 * Inserts a row of nulls into gaps in time, so that no line is drawn across them.
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

/** Minimum ms between rows that mean missing data. @param {Values} time @returns {number} */
function minGap(time) {
  const steps = Float64Array.from({ length: Math.max(0, time.length - 1) }, (_, row) => {
    return Number(time[row + 1]) - Number(time[row])
  })
  return Math.max(5000, 5 * (median(steps) || 0))
}

/**
 * @param {Columns} columns @param {readonly string[]} names @param {number} most buckets
 * @returns {Record<string, (number | null)[]>} `NAME`: averages; `NAME:min`, `NAME:max`; the rows themselves if
 *   there are no more than `most`
 */
export function downsample(columns, names, most) {
  const { time } = columns
  const rows = time.length
  if (rows <= most) return withGaps(columns, names)
  const first = Number(time[0])
  const width = (Number(time[rows - 1]) - first + 1) / most
  // Buckets without rows are omitted, except the first of several, which marks the hole.
  /** @type {{time: number, from: number, to: number}[]} */
  const buckets = []
  for (let bucket = 0, row = 0; bucket < most; bucket++) {
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
    const [averages, least, highest] = [[], [], []].map(() => /** @type {(number | null)[]} */ ([]))
    for (const { from, to } of buckets) {
      const { average, min, max } = aggregate(values, from, to)
      averages.push(sixDigits(average))
      least.push(sixDigits(min))
      highest.push(sixDigits(max))
    }
    Object.assign(result, { [name]: averages, [`${name}:min`]: least, [`${name}:max`]: highest })
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
