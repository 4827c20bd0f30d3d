// The table of `npm run bench -- peers`, in Markdown.

import { UsageError } from '../flags.js'

/** @typedef {import('../report.js').Result} Result */

/** Lines around the table in a file that has it. */
export const SIGNS = ['<!-- peers -->', '<!-- /peers -->']

/** Rows: label, load, figure, digits after the point. @type {[string, string, string, number][]} */
const ROWS = [
  ['bytes of user space for an idle connection', 'memory', 'bytes_per_connection', 0],
  ['processor time of a connect, µs', 'memory', 'connect_cpu_us', 0],
  ['processor time of a delivered message, µs', 'fan', 'cpu_us_per_message', 2],
  ['latency of 99 of 100 messages, at most, ms', 'fan', 'p99_ms', 1],
  ['delivered a second, at most', 'flat', 'delivered_per_s', 0],
]
/** Figures that are 0 when nothing went wrong, by load. */
const FAULTS = ['failed', 'closed', 'missing', 'order_faults', 'damaged', 'publish_errors']

/** @param {number | undefined} value @param {number} digits */
const formatted = (value, digits) =>
  value === undefined
    ? '-'
    : value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })

/**
 * @param {{name: string, results: Record<string, Result>}[]} columns medians by load, one column for each server
 * @param {string} circumstances one sentence
 * @returns {string} a table, faults and the sentence; ends with a line feed
 */
export function markdown(columns, circumstances) {
  const row = (/** @type {string[]} */ cells) => `| ${cells.join(' | ')} |`
  const measured = ROWS.filter(([, load]) => columns.some(({ results }) => results[load] !== undefined))
  const lines = [
    row(['', ...columns.map(({ name }) => name)]),
    row(['---', ...columns.map(() => '---:')]),
    ...measured.map(([label, load, figure, digits]) =>
      row([label, ...columns.map(({ results }) => formatted(results[load]?.[figure], digits))]),
    ),
  ]
  const faults = columns.flatMap(({ name, results }) =>
    Object.entries(results).flatMap(([load, result]) => {
      const found = FAULTS.filter(figure => result[figure] > 0).map(figure => `${result[figure]} ${figure}`)
      return found.length > 0 ? [`- ${name}, ${load}: ${found.join(', ')}`] : []
    }),
  )
  return `${[...lines, '', ...(faults.length > 0 ? ['Faults:', '', ...faults, ''] : []), circumstances].join('\n')}\n`
}

/**
 * @param {string} text of a file with both signs
 * @param {string} table @param {string} file its name
 * @returns {string} the text with the table between the signs
 * @throws {UsageError} the signs are missing
 */
export function replaceTable(text, table, file) {
  const start = text.indexOf(SIGNS[0])
  const end = text.indexOf(SIGNS[1], start)
  if (start < 0 || end < 0) throw new UsageError(`${file} has no lines ${SIGNS[0]} and ${SIGNS[1]}`)
  return `${text.slice(0, start + SIGNS[0].length)}\n\n${table}\n${text.slice(end)}`
}
