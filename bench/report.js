// Rounds, compares and tabulates figures.

/** @typedef {import('./scenarios.js').Result} Result */

/** @param {number} value @param {number} digits */
export const rounded = (value, digits) => Number(value.toFixed(digits))

/** Rounds a latency. @param {number} ms */
export const roundedMs = ms => rounded(ms, 2)

/**
 * Output of one part of a run: its name precedes each text.
 * @param {import('./bench.js').Io} io @param {string} name @returns {import('./scenarios.js').Show}
 */
export const prefixedOutput = ({ progress, warning }, name) => ({
  progress: text => progress(`${name}: ${text}`),
  warning: text => warning(`${name}: ${text}`),
})

/**
 * Prints one result as a table, or as a line of JSON.
 * @param {import('./bench.js').Io} io @param {boolean} json
 * @param {{scenario: string, [field: string]: string | number}} labels of the line @param {string} column of the table
 * @param {Result} result
 */
export const printResult = ({ print }, json, labels, column, result) =>
  print(
    `${json ? JSON.stringify({ ...labels, ...result }) : table(labels.scenario, [{ name: column, result }])}\n`,
  )

/** @param {number[]} values at least one @returns {number} */
function median(values) {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

/** @param {Result[]} results of several runs @returns {Result} each figure's median */
export const medians = results =>
  Object.fromEntries(Object.keys(results[0]).map(name => [name, median(results.map(result => result[name]))]))

/** @param {Result} result @param {Result} control @returns {Result} result / control, where the control is not 0 */
export const ratios = (result, control) =>
  Object.fromEntries(
    Object.keys(result)
      .filter(name => control[name] > 0)
      .map(name => [name, rounded(result[name] / control[name], 3)]),
  )

/** @param {number | undefined} value */
const formatted = value =>
  value === undefined
    ? '-'
    : value.toLocaleString('en', { maximumFractionDigits: Math.abs(value) < 100 ? 2 : 1 })

/**
 * A row for each figure and a column for each run or comparison.
 * @param {string} title @param {{name: string, result: Result}[]} columns @returns {string} ends with a line feed
 */
export function table(title, columns) {
  const names = Object.keys(columns[0].result)
  const cells = [
    [title, ...columns.map(({ name }) => name)],
    ...names.map(name => [name, ...columns.map(({ result }) => formatted(result[name]))]),
  ]
  const widths = cells[0].map((_, column) => Math.max(...cells.map(row => row[column].length)))
  const lines = cells.map(([head, ...figures]) =>
    [head.padEnd(widths[0]), ...figures.map((figure, i) => figure.padStart(widths[i + 1]))].join('  '),
  )
  return `${[lines[0], widths.map(width => '-'.repeat(width)).join('  '), ...lines.slice(1)].join('\n')}\n`
}
