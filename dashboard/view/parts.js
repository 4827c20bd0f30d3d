import { wrap } from '../../src/base/terminal-text.js'
import { clip, lineWidth, pad, sideBySide } from '../terminal/line.js'

/** @import { Line, Span } from '../terminal/line.js' */

/** Right end of a page title. @type {Line} */
export const BACK = [
  ['esc', 'key'],
  [' back', 'label'],
]
/** The same for a scrolling page. @type {Line} */
const MORE = [['page down', 'key'], [' more  ', 'label'], ...BACK]

/** @param {string} name @param {string | Span} value @param {string} [style] of the name @returns {Line} */
export const named = (name, value, style = 'label') => [
  [`${name} `, style],
  typeof value === 'string' ? [value, 'value'] : value,
]

/** @param {Line[]} items the most important first @param {number} width @param {number} [gap] */
export function fitItems(items, width, gap = 2) {
  /** @type {Line} */
  const line = []
  let taken = 0
  for (const item of items) {
    if (item.length === 0) continue
    const between = taken === 0 ? 0 : gap
    const wide = lineWidth(item)
    if (taken + between + wide > width) break
    if (between > 0) line.push([' '.repeat(between), ''])
    line.push(...item)
    taken += between + wide
  }
  return line
}

/** @param {Line} left kept if only one fits @param {Line} right @param {number} width @returns {Line} */
export function justified(left, right, width) {
  const room = width - lineWidth(left)
  if (room <= lineWidth(right)) return clip(left, width)
  return [...left, ...pad(right, room, 'right')]
}

/** @param {string} title @param {number} width @param {Line} [right] at the right end @returns {Line} */
export function rule(title, width, right = []) {
  const tail = right.length === 0 ? 0 : lineWidth(right) + 3
  const head = title.length + 4
  if (head + tail > width)
    return tail === 0 || head > width ? clip([[title, 'header']], width) : rule(title, width)
  /** @type {Line} */
  const line = [
    ['─ ', 'border'],
    [title, 'header'],
    [' ', ''],
    ['─'.repeat(width - head - tail + 1), 'border'],
  ]
  return tail === 0 ? line : [...line, [' ', ''], ...right, [' ─', 'border']]
}

/** @param {Line[]} lines @param {number} rows @param {number} scroll lines above, clamped */
export function scrolled(lines, rows, scroll) {
  const from = Math.max(0, Math.min(scroll, lines.length - rows))
  return lines.slice(from, from + rows)
}

/** @param {Span[]} spans one per line @param {number} width @param {number} rows @returns {Line[]} */
export function centred(spans, width, rows) {
  const above = Math.max(0, Math.floor((rows - spans.length) / 2))
  const lines = spans.map(
    ([text, style]) =>
      /** @type {Line} */ ([
        [' '.repeat(Math.max(0, Math.floor((width - text.length) / 2))), ''],
        [text, style],
      ]),
  )
  return [...new Array(above).fill([]), ...lines].slice(0, rows)
}

// Pages of figures: blocks of `name value` rows, packed into columns.

const BLOCK = { min: 25, max: 40, gap: 2 }

/** @param {number} width of the page */
export function blockColumns(width) {
  const count = Math.min(5, Math.max(1, Math.floor((width - 1 + BLOCK.gap) / (BLOCK.min + BLOCK.gap))))
  return { count, width: Math.min(BLOCK.max, Math.floor((width - 1 + BLOCK.gap) / count) - BLOCK.gap) }
}

/**
 * @param {Line[][]} blocks the most important first, each with its title; a block without figures is omitted
 * @param {{count: number, width: number}} columns
 */
export function packBlocks(blocks, { count, width }) {
  /** @type {Line[][]} */
  const stacks = Array.from({ length: count }, () => [])
  for (const block of blocks) {
    if (block.length < 2) continue
    const stack = stacks.reduce((lowest, stack) => (stack.length < lowest.length ? stack : lowest))
    if (stack.length > 0) stack.push([])
    stack.push(...block)
  }
  return sideBySide(stacks, new Array(count).fill(width), BLOCK.gap)
}

/**
 * @param {string} title @param {Line[]} fixed lines below the title @param {Line[]} lines scrolling lines below them
 * @param {{scroll: number}} state @param {number} width @param {number} rows
 */
export function detailPage(title, fixed, lines, { scroll }, width, rows) {
  const room = rows - 1 - fixed.length
  const indented = lines.map(line => /** @type {Line} */ ([[' ', ''], ...line]))
  return [
    rule(title, width, lines.length <= room ? BACK : MORE),
    ...fixed,
    ...scrolled(indented, room, scroll),
  ]
}

/** @param {string} text @returns {Line} */
export const blockTitle = text => [[text, 'header']]

/** @param {string} name truncated to fit @param {string | Span} value @param {number} width @returns {Line} */
export function figure(name, value, width) {
  const [text, style] = typeof value === 'string' ? [value, 'value'] : value
  return [
    ...pad([[name, 'label']], Math.max(0, width - text.length - 1), 'left', '…'),
    [' ', ''],
    [text, style],
  ]
}

/** @param {string} text @param {number} width @returns {string[]} lines, broken at spaces; long words are split */
export const wrapped = (text, width) =>
  wrap(text, width).flatMap(line => line.match(new RegExp(`.{1,${width}}`, 'g')) ?? [''])
