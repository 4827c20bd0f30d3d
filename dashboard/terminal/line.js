import { characters, clean, SINGLE_WIDTH } from './text.js'

// A screen consists of lines, and a line of spans: text with styles (theme.js). All functions are pure; all widths
// are in screen columns.

/** @typedef {string} Style from the theme; several are separated by a space (`selected bad`) */
/** @typedef {[text: string, style: Style]} Span */
/** @typedef {Span[]} Line */
/** @typedef {'left' | 'right'} Align */

/** @param {string} text @returns {number} columns; invisible characters count 0 */
export function visibleWidth(text) {
  if (SINGLE_WIDTH.test(text)) return text.length
  let columns = 0
  characters(clean(text), (_, width) => {
    columns += width
  })
  return columns
}

/** @param {Line} line @returns {number} columns */
export function lineWidth(line) {
  let columns = 0
  for (const [text] of line) columns += visibleWidth(text)
  return columns
}

/** @param {string} text @param {number} columns @returns {string} the part that fits */
export function clipText(text, columns) {
  if (SINGLE_WIDTH.test(text)) return text.length <= columns ? text : text.slice(0, Math.max(0, columns))
  let taken = 0
  let kept = ''
  let full = false
  characters(clean(text), (character, width) => {
    if (full || taken + width > columns) {
      full = true
      return
    }
    kept += character
    taken += width
  })
  return kept
}

/** @param {Line} line @param {number} columns @param {string} [mark] at the end of a cut line @returns {Line} */
export function clip(line, columns, mark = '') {
  if (lineWidth(line) <= columns) return line
  const available = Math.max(0, columns - visibleWidth(mark))
  /** @type {Line} */
  const clipped = []
  let taken = 0
  for (const [text, style] of line) {
    const kept = clipText(text, available - taken)
    const keptWidth = visibleWidth(kept)
    taken += keptWidth
    if (kept !== '') clipped.push([kept, style])
    // Compare widths: cleaning shortens text that fits.
    if (keptWidth < visibleWidth(text)) {
      const marked = clipText(mark, columns - taken)
      if (marked !== '') clipped.push([marked, style])
      break
    }
  }
  return clipped
}

/** @param {Line} line @param {number} columns @param {Align} [align] @param {string} [mark] @returns {Line} */
export function pad(line, columns, align = 'left', mark = '') {
  const clipped = clip(line, columns, mark)
  const missing = columns - lineWidth(clipped)
  if (missing <= 0) return clipped
  /** @type {Span} */
  const blanks = [' '.repeat(missing), '']
  return align === 'left' ? [...clipped, blanks] : [blanks, ...clipped]
}

/**
 * @param {(Span | Line)[]} cells @param {readonly {width: number, align?: Align}[]} columns default: aligned right
 * @param {number} [gap] columns between two cells @returns {Line}
 */
export const tableRow = (cells, columns, gap = 1) =>
  columns.flatMap(({ width, align = 'right' }, at) => {
    const line = pad(toLine(cells[at] ?? []), width, align)
    return at > 0 && gap > 0 ? [[' '.repeat(gap), ''], ...line] : line
  })

/** @param {Line[][]} blocks @param {number[]} widths of the blocks @param {number} [gap] columns between two blocks */
export function sideBySide(blocks, widths, gap = 1) {
  const height = Math.max(0, ...blocks.map(block => block.length))
  const columns = widths.map(width => ({ width, align: /** @type {const} */ ('left') }))
  const row = (/** @type {number} */ at) => blocks.map(block => block[at] ?? [])
  return Array.from({ length: height }, (_, at) => tableRow(row(at), columns, gap))
}

/** Adds a style to every span. @param {Line} line @param {Style} style @returns {Line} */
export function withStyle(line, style) {
  return line.map(([text, own]) => [text, own === '' ? style : `${own} ${style}`])
}

/** @param {Line} line @returns {string} its text without styles */
export function plain(line) {
  return line.map(([text]) => text).join('')
}

/** @param {Span | Line} cell @returns {Line} */
function toLine(cell) {
  return typeof cell[0] === 'string' ? [/** @type {Span} */ (cell)] : /** @type {Line} */ (cell)
}
