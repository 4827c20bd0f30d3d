/** @import { Line, Style } from '../terminal/line.js' */

/** Bits of a braille character (from U+2800), by column and row of its dots, from the top. */
const DOTS = [
  [0x01, 0x02, 0x04, 0x40],
  [0x08, 0x10, 0x20, 0x80],
]

/** Cells of a picture: each has 2 by 4 braille dots, or one ASCII character. */
export class Canvas {
  #columns
  /** @type {string[]} */
  #characters
  /** @type {Style[]} */
  #styles
  #dots

  /** @param {number} columns @param {number} rows @param {boolean} braille */
  constructor(columns, rows, braille) {
    this.#columns = columns
    this.#characters = Array(columns * rows).fill(' ')
    this.#styles = Array(columns * rows).fill('')
    this.#dots = braille ? new Uint8Array(columns * rows) : null
    this.width = braille ? columns * 2 : columns
    this.height = braille ? rows * 4 : rows
  }

  /** @param {number} column @param {number} row from the top @param {string} character @param {Style} style */
  cell(column, row, character, style) {
    const at = row * this.#columns + column
    this.#characters[at] = character
    this.#styles[at] = style
  }

  /** @param {number} x @param {number} y dots from the bottom @param {Style} style @param {string} character */
  dot(x, y, style, character) {
    const down = this.height - 1 - y
    if (this.#dots === null) {
      this.cell(x, down, character, style)
      return
    }
    const at = (down >> 2) * this.#columns + (x >> 1)
    this.#dots[at] |= DOTS[x & 1][down & 3]
    this.#styles[at] = style
    this.#characters[at] = String.fromCharCode(0x2800 + this.#dots[at])
  }

  /**
   * A line of dots (Bresenham's algorithm), except the first.
   * @param {number} x @param {number} y @param {number} toX not to the left of x
   * @param {number} toY @param {Style} style @param {string} character
   */
  line(x, y, toX, toY, style, character) {
    const across = toX - x
    const up = -Math.abs(toY - y)
    const direction = Math.sign(toY - y)
    let error = across + up
    while (x !== toX || y !== toY) {
      const twice = 2 * error
      if (twice >= up) {
        error += up
        x++
      }
      if (twice <= across) {
        error += across
        y += direction
      }
      this.dot(x, y, style, character)
    }
  }

  /** @param {number} row @returns {Line} */
  row(row) {
    /** @type {Line} */
    const line = []
    const begin = row * this.#columns
    let text = ''
    for (let at = begin; at < begin + this.#columns; at++) {
      text += this.#characters[at]
      if (at + 1 === begin + this.#columns || this.#styles[at + 1] !== this.#styles[at]) {
        line.push([text, this.#styles[at]])
        text = ''
      }
    }
    return line
  }
}
