import { characters, clean, isCertain, SINGLE, toAsciiText } from './text.js'

/**
 * @typedef {import('./line.js').Line} Line
 * @typedef {import('./theme.js').Theme} Theme
 *
 * @typedef {object} Row a place for each column
 * @property {string[]} characters '' is the right half of a wide one
 * @property {string[]} styles
 */

const PLAIN = /^[ -~]*$/
/** To go over so few unchanged columns costs less than to move the cursor. */
const BRIDGE = 8

/**
 * What is on the screen, and what has to be written so that it shows something else: of each row the runs that differ.
 */
export class Screen {
  #theme
  #unicode
  #columns = 0
  /** @type {Row[]} what is on the screen; empty where that is not known */
  #rows = []
  /** @type {(Line | null)[]} what the rows were made of */
  #lines = []
  #next = blankRow(0)
  #out = ''
  /** What the terminal writes with just now; '' when that is not known. */
  #sequence = ''

  /**
   * @param {Theme} theme
   * @param {boolean} unicode
   */
  constructor(theme, unicode) {
    this.#theme = theme
    this.#unicode = unicode
  }

  /**
   * @param {number} columns
   * @param {number} rows
   */
  resize(columns, rows) {
    if (columns === this.#columns && rows === this.#rows.length) return
    this.#columns = columns
    this.#rows = Array.from({ length: rows }, () => blankRow(columns))
    this.#next = blankRow(columns)
    this.forget()
  }

  /** Whatever is there is not what we know. */
  forget() {
    this.#lines = this.#rows.map(() => null)
  }

  /**
   * @param {Line[]} lines missing ones are empty; what does not fit is left out
   * @returns {string} to be written to the terminal; '' when nothing has changed
   */
  show(lines) {
    this.#out = ''
    this.#sequence = ''
    for (let row = 0; row < this.#rows.length; row++) {
      const line = lines[row] ?? []
      const shown = this.#lines[row]
      if (shown !== null && isSame(line, shown)) continue
      this.#fill(line)
      this.#write(row, shown === null)
      const before = this.#rows[row]
      this.#rows[row] = this.#next
      this.#next = before
      this.#lines[row] = line
    }
    return this.#out
  }

  /** @param {Line} line */
  #fill(line) {
    const row = this.#next
    const columns = this.#columns
    let at = 0
    for (const [text, style] of line) {
      if (at >= columns) break
      if (this.#unicode ? SINGLE.test(text) : PLAIN.test(text)) {
        const end = Math.min(columns, at + text.length)
        for (let i = 0; at < end; i++, at++) {
          row.characters[at] = text[i]
          row.styles[at] = style
        }
        continue
      }
      characters(this.#unicode ? clean(text) : toAsciiText(text), (character, width) => {
        if (at >= columns) return
        // Half of a wide one is nothing.
        const fits = at + width <= columns
        row.characters[at] = fits ? character : ' '
        row.styles[at++] = style
        if (width === 2 && fits) {
          row.characters[at] = ''
          row.styles[at++] = style
        }
      })
    }
    for (; at < columns; at++) {
      row.characters[at] = ' '
      row.styles[at] = ''
    }
  }

  /**
   * Writes where the next row differs from the one that is there.
   *
   * @param {number} index
   * @param {boolean} whole it is not known what is there
   */
  #write(index, whole) {
    const old = this.#rows[index]
    const row = this.#next
    const columns = this.#columns
    // From here on it is blank: one sequence erases that.
    let blank = columns
    while (blank > 0 && row.characters[blank - 1] === ' ' && row.styles[blank - 1] === '') blank--
    /** @param {number} at */
    const differs = at =>
      whole || row.characters[at] !== old.characters[at] || row.styles[at] !== old.styles[at]

    let at = 0
    while (at < blank) {
      if (!differs(at)) {
        at++
        continue
      }
      let end = at + 1
      for (let i = end; i < blank && i - end < BRIDGE; i++) if (differs(i)) end = i + 1
      if (row.characters[at] === '') at--
      this.#writeRun(index, row, at, end)
      at = end
    }
    for (at = blank; at < columns; at++) {
      if (!differs(at)) continue
      this.#move(index, blank)
      this.#style('')
      this.#out += '\x1b[K'
      break
    }
  }

  /**
   * @param {number} index
   * @param {Row} row
   * @param {number} from
   * @param {number} end
   */
  #writeRun(index, row, from, end) {
    this.#move(index, from)
    let run = ''
    let style = row.styles[from]
    this.#style(style)
    for (let at = from; at < end; at++) {
      const character = row.characters[at]
      if (row.styles[at] !== style) {
        this.#out += run
        run = ''
        style = row.styles[at]
        this.#style(style)
      }
      run += character
      // The terminal may think otherwise of how wide that was: what follows stands where it should in any case.
      if (character !== '' && !isCertain(character)) {
        const next = row.characters[at + 1] === '' ? at + 2 : at + 1
        if (next < end) run += `\x1b[${next + 1}G`
      }
    }
    this.#out += run
  }

  /**
   * @param {number} row
   * @param {number} column
   */
  #move(row, column) {
    this.#out += column === 0 ? `\x1b[${row + 1}H` : `\x1b[${row + 1};${column + 1}H`
  }

  /** @param {string} style */
  #style(style) {
    const sequence = this.#theme.sequence(style)
    if (sequence === this.#sequence) return
    this.#sequence = sequence
    this.#out += sequence
  }
}

/**
 * @param {number} columns
 * @returns {Row}
 */
function blankRow(columns) {
  return { characters: Array(columns).fill(' '), styles: Array(columns).fill('') }
}

/**
 * @param {Line} a
 * @param {Line} b
 */
function isSame(a, b) {
  if (a === b) return true
  if (a.length !== b.length) return false
  for (let i = 0; i < a.length; i++) if (a[i][0] !== b[i][0] || a[i][1] !== b[i][1]) return false
  return true
}
