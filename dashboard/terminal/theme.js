/** @import { Colors } from './capabilities.js' */
/** @import { Style } from './line.js' */

/** @typedef {{bright?: number, shade?: number, font?: number, mono?: number}} Look bright of 16, shade of 256 colours */

// Blessed's values.
const BOLD = 1
const INVERSE = 8
const DEFAULT = 0x1ff

// The terminal's background may be dark or light. Every colour has a contrast of at least 3 to 1 on black and on
// white (a test computes it); pure blue is unreadable on black, yellow on white.

/** @type {Record<string, Look>} */
export const STYLES = {
  title: { bright: 6, shade: 31, font: BOLD, mono: BOLD },
  header: { font: BOLD, mono: BOLD },
  label: { shade: 243 },
  dim: { shade: 243 },
  border: { shade: 243 },
  value: {},
  good: { bright: 2, shade: 28 },
  warn: { bright: 3, shade: 136, mono: BOLD },
  bad: { bright: 1, shade: 160, font: BOLD, mono: BOLD | INVERSE },
  accent: { bright: 6, shade: 31 },
  key: { bright: 6, shade: 31, font: BOLD, mono: BOLD },
  selected: { font: INVERSE, mono: INVERSE },
  series1: { bright: 6, shade: 31 },
  series2: { bright: 5, shade: 134 },
  series3: { bright: 2, shade: 65 },
  series4: { bright: 3, shade: 166 },
  series5: { bright: 1, shade: 161 },
  series6: { bright: 4, shade: 62 },
}

export class Theme {
  #colors
  /** @type {Map<Style, number>} */
  #attributes = new Map()

  /** @param {Colors} colors */
  constructor(colors) {
    this.#colors = colors
  }

  /** Flags, foreground and background, nine bits each. @param {Style} style one name or several */
  attributes(style) {
    let attributes = this.#attributes.get(style)
    if (attributes === undefined) {
      let flags = 0
      let foreground = DEFAULT
      for (const name of style.split(' ')) {
        const { bright, shade, font = 0, mono = 0 } = STYLES[name] ?? {}
        flags |= this.#colors === 0 ? mono : font
        foreground = (this.#colors === 16 ? bright : this.#colors === 256 ? shade : undefined) ?? foreground
      }
      attributes = (flags << 18) | (foreground << 9) | DEFAULT
      this.#attributes.set(style, attributes)
    }
    return attributes
  }
}
