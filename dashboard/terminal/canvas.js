import { characters, clean, hasCertainWidth, SINGLE_WIDTH, toAsciiText } from './text.js'

/** @import { Line } from './line.js' */
/** @import { Theme } from './theme.js' */

/** @typedef {[attributes: number, text: string]} Cell of blessed; '' is the right half of a wide character */
/** @typedef {Cell[] & {dirty: boolean}} Row */

const PLAIN = /^[ -~]*$/
/** @type {Line} */
const EMPTY = []

/**
 * Writes lines into the cells of a blessed screen, which sends changes to the terminal. Blessed's own
 * elements parse tags and escapes in text; here text is cleaned and its style is separate.
 */
export class Canvas {
  #theme
  #unicode
  /** @type {Row[]} */
  #cells = []
  /** @type {Line[]} shown by the rows */
  #lines = []

  /** @param {Theme} theme @param {boolean} unicode */
  constructor(theme, unicode) {
    this.#theme = theme
    this.#unicode = unicode
  }

  /** @param {Row[]} cells of the screen; a new array is blank @param {Line[]} lines missing ones are empty */
  paint(cells, lines) {
    if (cells !== this.#cells) this.#lines = []
    this.#cells = cells
    for (let row = 0; row < cells.length; row++) {
      const line = lines[row] ?? EMPTY
      if (isSame(line, this.#lines[row] ?? EMPTY)) continue
      this.#lines[row] = line
      this.#fill(cells[row], line)
      cells[row].dirty = true
    }
  }

  /** @param {Row} row @param {Line} line */
  #fill(row, line) {
    const columns = row.length
    let at = 0
    // Terminals disagree about the width of some characters: reposition the cursor after one.
    let placed = true
    const put = (/** @type {number} */ attributes, /** @type {string} */ text) => {
      const cell = row[at++]
      cell[0] = attributes
      cell[1] = placed ? text : `\x1b[${at}G${text}`
      placed = true
    }
    for (const [text, style] of line) {
      if (at >= columns) break
      const attributes = this.#theme.attributes(style)
      if (placed && (this.#unicode ? SINGLE_WIDTH.test(text) : PLAIN.test(text))) {
        const end = Math.min(columns, at + text.length)
        for (let i = 0; at < end; i++, at++) {
          const cell = row[at]
          cell[0] = attributes
          cell[1] = text[i]
        }
        continue
      }
      characters(this.#unicode ? clean(text) : toAsciiText(text), (character, width) => {
        if (at >= columns) return
        // Terminals cannot show half a character.
        const fits = at + width <= columns
        put(attributes, fits ? character : ' ')
        if (width === 2 && fits) put(attributes, '')
        placed = hasCertainWidth(character)
      })
    }
    const blank = this.#theme.attributes('')
    while (at < columns) put(blank, ' ')
  }
}

/** @param {Line} a @param {Line} b */
function isSame(a, b) {
  if (a === b) return true
  if (a.length !== b.length) return false
  for (let i = 0; i < a.length; i++) if (a[i][0] !== b[i][0] || a[i][1] !== b[i][1]) return false
  return true
}
