import { clip, pad, width as widthOf } from '../terminal/line.js'

/**
 * @typedef {import('./panel.js').Line} Line
 * @typedef {import('./panel.js').Span} Span
 */

/** @type {Line} */
const NOTHING = []

/** At the right end of what is open in front. @type {Line} */
export const BACK = [
  ['esc', 'key'],
  [' back', 'label'],
]

/**
 * @param {string} name
 * @param {string | Span} value
 * @param {string} [style] of the name
 * @returns {Line} a figure with its name before it
 */
export const named = (name, value, style = 'label') => [
  [`${name} `, style],
  typeof value === 'string' ? [value, 'value'] : value,
]

/**
 * @param {Line[]} items the most important ones first
 * @param {number} width columns
 * @param {number} [gap]
 * @returns {Line} as many of them as fit, one behind the other
 */
export function flow(items, width, gap = 2) {
  /** @type {Line} */
  const line = []
  let taken = 0
  for (const item of items) {
    if (item.length === 0) continue
    const between = taken === 0 ? 0 : gap
    const wide = widthOf(item)
    if (taken + between + wide > width) break
    if (between > 0) line.push([' '.repeat(between), ''])
    line.push(...item)
    taken += between + wide
  }
  return line
}

/**
 * @param {Line} left wins where there is no room for both
 * @param {Line} right
 * @param {number} width columns
 * @returns {Line}
 */
export function spread(left, right, width) {
  const room = width - widthOf(left)
  if (room <= widthOf(right)) return clip(left, width)
  return [...left, ...pad(right, room, 'right')]
}

/**
 * @param {string} title
 * @param {number} width columns
 * @param {Line} [right] at the right end
 * @returns {Line} a line across, with a title in it
 */
export function rule(title, width, right = NOTHING) {
  const tail = right.length === 0 ? 0 : widthOf(right) + 3
  const head = title === '' ? 0 : title.length + 4
  if (head + tail > width)
    return tail === 0 || head > width ? clip([[title, 'header']], width) : rule(title, width)
  /** @type {Line} */
  const line =
    title === ''
      ? []
      : [
          ['─ ', 'border'],
          [title, 'header'],
          [' ', ''],
        ]
  line.push(['─'.repeat(width - head - tail + (head === 0 ? 0 : 1)), 'border'])
  return tail === 0 ? line : [...line, [' ', ''], ...right, [' ─', 'border']]
}

/** @type {Record<string, string>} */
const LEVELS = { info: 'value', warn: 'warn', error: 'bad' }

/** @param {string} level of an event */
export const levelStyle = level => LEVELS[level] ?? 'value'

/**
 * @param {Line[]} lines
 * @param {number} rows
 * @param {number} scroll lines above; less where there are not so many
 * @returns {Line[]} those that are seen
 */
export function scrolled(lines, rows, scroll) {
  const from = Math.max(0, Math.min(scroll, lines.length - rows))
  return lines.slice(from, from + rows)
}
