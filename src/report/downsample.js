// A long run for a narrow chart: rows become buckets of equal time, with the average, the least and the most of each, so that a
// peak of one second is still there in a day.

import { median } from '../charts/derive.js'

/** @typedef {import('../charts/derive.js').Columns} Columns */

/**
 * @param {number} value
 * @returns {number | null} six figures: what a chart can show, and no more in the page
 */
const brief = value => (Number.isFinite(value) ? Number(value.toPrecision(6)) : null)

/**
 * Rows as they are, with a row of nothing where there is a hole in time, so that no line is drawn across it.
 * @param {Columns} columns
 * @param {readonly string[]} names
 * @returns {Record<string, (number | null)[]>}
 */
export function withHoles(columns, names) {
  const { time } = columns
  const hole = holeOf(time)
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
    const list = Array.from(values, value => (name === 'time' ? value : brief(value ?? Number.NaN)))
    for (const [done, row] of before.entries()) {
      list.splice(row + done, 0, name === 'time' ? Number(time[row - 1]) + 1 : null)
    }
    result[name] = list
  }
  return result
}

/**
 * @param {import('../charts/derive.js').Values} time
 * @returns {number} ms between rows that mean that something is missing
 */
function holeOf(time) {
  const steps = Float64Array.from({ length: Math.max(0, time.length - 1) }, (_, row) => {
    return Number(time[row + 1]) - Number(time[row])
  })
  return Math.max(5000, 5 * (median(steps) || 0))
}

/**
 * @param {Columns} columns
 * @param {readonly string[]} names
 * @param {number} most buckets
 * @returns {Record<string, (number | null)[]>} `NAME`: averages; `NAME:min`, `NAME:max`; the rows themselves if there are no more than `most`
 */
export function downsample(columns, names, most) {
  const { time } = columns
  const rows = time.length
  if (rows <= most) return withHoles(columns, names)
  const first = Number(time[0])
  const width = (Number(time[rows - 1]) - first + 1) / most
  // Where each bucket's rows begin; a bucket without rows is left out, but the first of several marks the hole.
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
      const { average, min, max } = sumUp(values, from, to)
      averages.push(brief(average))
      least.push(brief(min))
      highest.push(brief(max))
    }
    Object.assign(result, { [name]: averages, [`${name}:min`]: least, [`${name}:max`]: highest })
  }
  return result
}

/**
 * @param {import('../charts/derive.js').Values} values
 * @param {number} from
 * @param {number} to
 */
function sumUp(values, from, to) {
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
