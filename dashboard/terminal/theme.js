/**
 * @typedef {import('./capabilities.js').Colors} Colors
 * @typedef {import('./line.js').Style} Style
 *
 * @typedef {object} Look
 * @property {number} [bright] in the terminal's own palette of 16 colours: 31 to 37
 * @property {number} [shade] in the palette of 256
 * @property {string} [rgb] hexadecimal
 * @property {number[]} [font] 1 bold, 2 faint, 4 underlined, 7 reverse
 * @property {number[]} [mono] the same where there are no colours
 */

// There is no background of our own: the terminal's may be dark or light. So every colour here is of middle brightness, with a
// contrast of at least 3 to 1 on black and on white (a test computes it); pure blue is lost on the one, yellow on the other.

/** @type {Record<string, Look>} */
export const STYLES = {
  title: { bright: 36, shade: 31, rgb: '0e87a5', font: [1], mono: [1] },
  header: { font: [1], mono: [1] },
  label: { shade: 243, rgb: '767676' },
  dim: { shade: 243, rgb: '767676', font: [] },
  border: { shade: 243, rgb: '767676' },
  value: { font: [] },
  good: { bright: 32, shade: 28, rgb: '1f8f3a' },
  warn: { bright: 33, shade: 136, rgb: 'b07800', mono: [1] },
  bad: { bright: 31, shade: 160, rgb: 'd93025', font: [1], mono: [1, 7] },
  accent: { bright: 36, shade: 31, rgb: '0e87a5' },
  key: { bright: 36, shade: 31, rgb: '0e87a5', font: [1], mono: [1] },
  selected: { font: [7], mono: [7] },
  series1: { bright: 36, shade: 31, rgb: '0e87a5' },
  series2: { bright: 35, shade: 134, rgb: 'a05bc8' },
  series3: { bright: 32, shade: 65, rgb: '4f8a4b' },
  series4: { bright: 33, shade: 166, rgb: 'cc6a14' },
  series5: { bright: 31, shade: 161, rgb: 'd0336e' },
  series6: { bright: 34, shade: 62, rgb: '5b6fd6' },
}

/**
 * What to send to a terminal for a style.
 */
export class Theme {
  #colors
  /** @type {Map<Style, string>} */
  #sequences = new Map()

  /** @param {Colors} colors */
  constructor(colors) {
    this.#colors = colors
  }

  /**
   * @param {Style} style a name, or several of them; an unknown one is plain
   * @returns {string} a control sequence that sets it, whatever was set before
   */
  sequence(style) {
    let sequence = this.#sequences.get(style)
    if (sequence === undefined) {
      const codes = style.split(' ').flatMap(name => this.#codesOf(STYLES[name] ?? {}))
      sequence = `\x1b[${[...new Set([0, ...codes])].join(';')}m`
      this.#sequences.set(style, sequence)
    }
    return sequence
  }

  /**
   * @param {Look} look
   * @returns {(number | string)[]}
   */
  #codesOf({ bright, shade, rgb, font = [], mono = [] }) {
    if (this.#colors === 0) return mono
    if (this.#colors === 16) return bright === undefined ? font : [...font, bright]
    if (this.#colors === 256) return shade === undefined ? font : [...font, `38;5;${shade}`]
    if (rgb === undefined) return font
    const [red, green, blue] = [0, 2, 4].map(at => Number.parseInt(rgb.slice(at, at + 2), 16))
    return [...font, `38;2;${red};${green};${blue}`]
  }
}
