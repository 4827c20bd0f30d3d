import { CHART_COLUMNS } from '../charts/definitions.js'
import { derive } from '../charts/derive.js'
import { downsample } from './downsample.js'
import { summarize } from './summary.js'

/** @typedef {import('../charts/derive.js').Columns} Columns */

/**
 * A run as a page shows it.
 *
 * @typedef {object} Run
 * @property {string} label
 * @property {Record<string, string>} facts of the gateway and its machine; empty if the file has none
 * @property {number} starts gateways that wrote to the file
 * @property {import('./summary.js').Summary} summary
 * @property {Record<string, (number | null)[]>} columns for the charts, not more rows than a page needs
 */

/**
 * Rows in the order of time, each time once: files may have been put together in any order, and clocks may be set back.
 * @param {Columns} columns
 * @returns {Columns}
 */
export function inOrder(columns) {
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
 * @param {object} source
 * @param {string} source.label
 * @param {Columns} source.columns by the names of the CSV, `time` (unix ms) among them; at least one row
 * @param {{facts: Record<string, string>}[]} [source.facts]
 * @param {number} [source.points] rows for the charts, at most
 * @returns {Run}
 */
export function makeRun({ label, columns, facts = [], points = 1200 }) {
  const all = derive(inOrder(columns))
  return {
    label,
    facts: facts[facts.length - 1]?.facts ?? {},
    starts: facts.length,
    summary: summarize(all),
    columns: downsample(all, CHART_COLUMNS, points),
  }
}
