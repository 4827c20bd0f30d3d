// Rounds, compares and tabulates figures.

/** @typedef {Record<string, number>} Result figures by name; a name ends with its unit, if it has one */

/** @param {number} value @param {number} digits */
export const rounded = (value, digits) => Number(value.toFixed(digits))

/** Rounds a latency. @param {number} ms */
export const roundedMs = ms => rounded(ms, 2)

/** @param {number[]} values at least one @returns {number} */
function median(values) {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

/** @param {Result[]} results of several runs @returns {Result} each figure's median */
export const medians = results =>
  Object.fromEntries(
    Object.keys(results[0]).map(name => [name, median(results.map(result => result[name] ?? 0))]),
  )

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

/**
 * The same in Markdown.
 * @param {string} title @param {{name: string, result: Result}[]} columns @returns {string} ends with a line feed
 */
export function markdownTable(title, columns) {
  const row = (/** @type {string[]} */ cells) => `| ${cells.join(' | ')} |\n`
  const names = Object.keys(columns[0].result)
  return [
    row([title, ...columns.map(({ name }) => name)]),
    row(['---', ...columns.map(() => '---:')]),
    ...names.map(name => row([`\`${name}\``, ...columns.map(({ result }) => formatted(result[name]))])),
  ].join('')
}
