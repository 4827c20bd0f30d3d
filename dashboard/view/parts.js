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

/**
 * @param {Line[]} items the most important first
 * @param {number} width @param {number} [gap] @returns {Line} the items that fit, separated by `gap`
 */
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

/** @param {Line} left kept if both do not fit @param {Line} right @param {number} width @returns {Line} */
export function justified(left, right, width) {
  const room = width - lineWidth(left)
  if (room <= lineWidth(right)) return clip(left, width)
  return [...left, ...pad(right, room, 'right')]
}

/**
 * A horizontal line with a title.
 * @param {string} title @param {number} width @param {Line} [right] at the right end
 * @returns {Line}
 */
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

/**
 * @param {Line[]} lines @param {number} rows @param {number} scroll lines above, limited to the possible
 * @returns {Line[]}
 */
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

const BLOCK = { least: 25, most: 40, gap: 2 }

/**
 * @param {number} width of the page
 * @returns {{count: number, width: number}} columns of blocks, and the width of each
 */
export function blockColumns(width) {
  const count = Math.min(5, Math.max(1, Math.floor((width - 1 + BLOCK.gap) / (BLOCK.least + BLOCK.gap))))
  return { count, width: Math.min(BLOCK.most, Math.floor((width - 1 + BLOCK.gap) / count) - BLOCK.gap) }
}

/**
 * Puts each block into the column that is shortest so far.
 * @param {Line[][]} blocks the most important first; the first line of each is its title; a block without figures
 *   is omitted
 * @param {{count: number, width: number}} columns @returns {Line[]}
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
 * A page with a title.
 * @param {string} title @param {Line[]} fixed lines below the title
 * @param {Line[]} lines scrolling lines below them
 * @param {{scroll: number}} state @param {number} width @param {number} rows @returns {Line[]}
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

/**
 * @param {string} name cut if both do not fit
 * @param {string | Span} value at the right end
 * @param {number} width @returns {Line}
 */
export function figure(name, value, width) {
  const [text, style] = typeof value === 'string' ? [value, 'value'] : value
  return [
    ...pad([[name, 'label']], Math.max(0, width - text.length - 1), 'left', '…'),
    [' ', ''],
    [text, style],
  ]
}

/** @param {string} text @param {number} width @returns {string[]} lines, broken between words; longer words are broken */
export function wrapped(text, width) {
  /** @type {string[]} */
  const lines = ['']
  for (const word of text.split(' ')) {
    const line = `${lines.at(-1)} ${word}`.trimStart()
    if (line.length <= width) lines[lines.length - 1] = line
    else for (let at = 0; at < word.length; at += width) lines.push(word.slice(at, at + width))
  }
  return lines
}
