/**
 * @typedef {import('../terminal/line.js').Line} Line
 * @typedef {import('../terminal/line.js').Span} Span
 */

/**
 * @param {Span[]} spans one a line
 * @param {number} width
 * @param {number} rows
 * @returns {Line[]} in the middle of so much room
 */
export function centred(spans, width, rows) {
  const above = Math.max(0, Math.floor((rows - spans.length) / 2))
  const lines = spans.map(
    ([text, style]) =>
      /** @type {Line} */ ([
        [' '.repeat(Math.max(0, Math.floor((width - text.length) / 2))), ''],
        [text, style],
      ]),
  )
  return [...new Array(above).fill([]), ...lines].slice(0, rows)
}
