/** @import { Line, Style } from '../terminal/line.js' */

/** Cells filled from the bottom, by eighths. */
export const LOWER_BLOCKS = ' ▁▂▃▄▅▆▇█'
const LEFT_BLOCKS = ' ▏▎▍▌▋▊▉█'
const ASCII_LEVELS = '_.-=*#'

/**
 * @param {(number | null)[]} values @param {number} width columns: the last `width` values, right-aligned
 * @param {boolean} unicode @param {number} max of the range from 0; larger values are cut
 */
export function sparkline(values, width, unicode, max) {
  const shown = values.slice(Math.max(0, values.length - width))
  const levels = unicode ? LOWER_BLOCKS.slice(1) : ASCII_LEVELS
  let text = ''
  for (const value of shown) {
    if (value === null || value === undefined || Number.isNaN(value)) {
      text += ' '
      continue
    }
    const share = clamp(value / max)
    // The lowest level is only for zero: other values are visible.
    text += levels[share === 0 ? 0 : Math.max(1, Math.round(share * (levels.length - 1)))]
  }
  return text.padStart(width)
}

/** @param {number} share 0 to 1 @param {number} width @param {boolean} unicode @param {Style} style */
export function bar(share, width, unicode, style) {
  const eighths = Math.round(clamp(share) * width * 8)
  const fullCells = unicode ? eighths >> 3 : Math.round(eighths / 8)
  let filled = (unicode ? '█' : '#').repeat(fullCells)
  if (unicode && (eighths & 7) > 0) filled += LEFT_BLOCKS[eighths & 7]
  return toLine([
    [filled, style],
    [(unicode ? '░' : '.').repeat(width - filled.length), 'dim'],
  ])
}

/**
 * @param {{share: number, style: Style}[]} parts shares of the whole width; the rest is free
 * @param {number} width @param {boolean} unicode @param {boolean} [colors] false: the parts differ by pattern
 */
export function stackedBar(parts, width, unicode, colors = true) {
  let sum = 0
  let taken = 0
  /** @type {Line} */
  const line = parts.map(({ share, style }, index) => {
    sum += clamp(share)
    // Rounds ends, not lengths: rounding errors do not add up.
    const end = Math.min(width, Math.round(sum * width))
    const text = pattern(index, unicode, colors).repeat(Math.max(0, end - taken))
    taken = Math.max(taken, end)
    return [text, style]
  })
  return toLine([...line, [(unicode && colors ? '░' : unicode ? ' ' : '.').repeat(width - taken), 'dim']])
}

/** @param {number} index @param {boolean} unicode @param {boolean} colors */
export function pattern(index, unicode, colors) {
  if (!unicode) return '#=:+%o'[index % 6]
  return colors ? '█' : '█▒░▓▞▤'[index % 6]
}

/** @param {Line} line */
const toLine = line => line.filter(([text]) => text !== '')

/** @param {number} share @returns {number} 0 to 1 */
export const clamp = share => (share > 0 ? Math.min(1, share) : 0)
