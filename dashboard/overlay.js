import { clipText, pad, visibleWidth, width as widthOf } from './terminal/line.js'

/** @typedef {import('./terminal/line.js').Line} Line */

/**
 * @param {Line[]} lines
 * @param {Line[]} box all of its lines are of the same width
 * @param {number} top
 * @param {number} left
 * @returns {Line[]} with the box in front of them
 */
export function overlay(lines, box, top, left) {
  const width = widthOf(box[0])
  return Array.from({ length: Math.max(lines.length, top + box.length) }, (_, row) => {
    const line = lines[row] ?? []
    const front = box[row - top]
    return front === undefined ? line : [...pad(line, left), ...front, ...skip(line, left + width)]
  })
}

/**
 * @param {Line} line
 * @param {number} columns
 * @returns {Line} what stands to the right of so many columns
 */
function skip(line, columns) {
  /** @type {Line} */
  const rest = []
  let left = columns
  for (const [text, style] of line) {
    const width = visibleWidth(text)
    if (left <= 0) rest.push([text, style])
    else if (width > left) rest.push([text.slice(clipText(text, left).length), style])
    left -= width
  }
  return rest
}
