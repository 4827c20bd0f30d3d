/** @import { Line, Style } from '../terminal/line.js' */

/** From bottom to top, by eighths. */
export const LEVELS = ' ▁▂▃▄▅▆▇█'
/** From left to right, by eighths. */
const PARTS = ' ▏▎▍▌▋▊▉█'
const ASCII_LEVELS = '_.-=*#'

/**
 * @param {(number | null)[]} values @param {number} width columns: the last `width` values, right-aligned
 * @param {boolean} unicode @param {{min?: number, max?: number}} [range] default: from 0 to the largest shown
 * @returns {string}
 */
export function sparkline(values, width, unicode, { min = 0, max } = {}) {
  const shown = values.slice(Math.max(0, values.length - width))
  const top = max ?? Math.max(min, ...shown.map(value => value ?? min))
  const levels = unicode ? LEVELS.slice(1) : ASCII_LEVELS
  let text = ''
  for (const value of shown) {
    if (value === null || value === undefined || Number.isNaN(value)) {
      text += ' '
      continue
    }
    const share = top > min ? clamp((value - min) / (top - min)) : 0
    // The lowest level means zero: more than zero is visible.
    text += levels[share === 0 ? 0 : Math.max(1, Math.round(share * (levels.length - 1)))]
  }
  return text.padStart(width)
}

/**
 * @param {number} share @param {number} width @param {boolean} unicode @param {Style} style
 * @returns {Line} the unfilled part is `dim`
 */
export function bar(share, width, unicode, style) {
  const eighths = Math.round(clamp(share) * width * 8)
  const whole = unicode ? eighths >> 3 : Math.round(eighths / 8)
  let filled = (unicode ? '█' : '#').repeat(whole)
  if (unicode && (eighths & 7) > 0) filled += PARTS[eighths & 7]
  return toLine([
    [filled, style],
    [(unicode ? '░' : '.').repeat(width - filled.length), 'dim'],
  ])
}

/**
 * @param {{share: number, style: Style}[]} parts shares of the whole width; the rest is free
 * @param {number} width @param {boolean} unicode @param {boolean} [colors] false: the parts differ by pattern
 * @returns {Line}
 */
export function stackedBar(parts, width, unicode, colors = true) {
  let sum = 0
  let taken = 0
  /** @type {Line} */
  const line = parts.map(({ share, style }, index) => {
    sum += clamp(share)
    // Rounds ends, not lengths: the sum stays exact.
    const end = Math.min(width, Math.round(sum * width))
    const text = pattern(index, unicode, colors).repeat(Math.max(0, end - taken))
    taken = Math.max(taken, end)
    return [text, style]
  })
  return toLine([...line, [(unicode && colors ? '░' : unicode ? ' ' : '.').repeat(width - taken), 'dim']])
}

/**
 * @param {number} index @param {boolean} unicode @param {boolean} colors
 * @returns {string} the character of the part's cells
 */
export function pattern(index, unicode, colors) {
  if (!unicode) return '#=:+%o'[index % 6]
  return colors ? '█' : '█▒░▓▞▤'[index % 6]
}

/** @param {Line} line */
function toLine(line) {
  return line.filter(([text]) => text !== '')
}

/** @param {number} share */
function clamp(share) {
  return share > 0 ? Math.min(1, share) : 0
}
