import { whole } from '../../src/base/format.js'
import { clip, pad, tableRow, withStyle } from '../terminal/line.js'

/** @import { Align, Line } from '../terminal/line.js' */

/** @typedef {{name: string, title: string, group: string, width: number, align?: Align, rank: number}} Column */

/**
 * @template {Column} C
 * @typedef {{list: C[], gap: number, used: number}} Chosen used: columns of the screen, including the mark
 */

/**
 * @template Row
 * @template {Column} C
 * @typedef {object} Table
 * @property {string} title
 * @property {Chosen<C>} chosen
 * @property {string} sort name of the sort column
 * @property {Row[]} rows
 * @property {(row: Row) => boolean} isSelected
 * @property {(row: Row, indent: number) => Line | null} absent replaces the cells of a row without figures
 * @property {(column: C, row: Row) => Line} cell
 * @property {(column: C) => Line} total
 * @property {{title: string, width: number, line: (row: Row) => Line} | null} [tail] sparkline after the columns
 */

/** Rows of a table without workers or drones: groups, titles, totals. */
export const FRAME_ROWS = 3
const MAX_GAP = 3
/** Columns of the selection mark before the first column. */
const MARK = 1

/**
 * Drops the columns of the highest rank until the rest fits.
 * @template {{width: number, rank: number}} C
 * @param {readonly C[]} columns @param {number} width includes a blank after each column
 */
export function fitting(columns, width) {
  let list = [...columns]
  while (list.length > 1 && list.reduce((sum, column) => sum + column.width + 1, 0) > width) {
    const rank = Math.max(...list.map(column => column.rank))
    list = list.toSpliced(
      list.findLastIndex(column => column.rank === rank),
      1,
    )
  }
  return list
}

/** @template {Column} C @param {readonly C[]} columns @param {number} width @returns {Chosen<C>} */
export function choose(columns, width) {
  const list = fitting(columns, width - MARK + 1)
  const needed = (/** @type {number} */ gap) =>
    list.reduce((sum, column) => sum + column.width + gap, 0) - gap + MARK
  let gap = 1
  while (gap < MAX_GAP && needed(gap + 1) < width) gap++
  return { list, gap, used: needed(gap) }
}

/**
 * A scrolling table: the selected row is always visible, in the middle if possible, as one bar from edge to edge.
 * @template Row
 * @template {Column} C
 * @param {Table<Row, C>} parts @param {number} width @param {number} height rows, including FRAME_ROWS
 */
export function table(parts, width, height) {
  const { title, chosen, sort, rows, isSelected, absent, cell, total, tail = null } = parts
  const { list, gap } = chosen
  const room = Math.max(1, height - FRAME_ROWS)
  const from = Math.max(0, Math.min(rows.length - room, rows.findIndex(isSelected) - Math.floor(room / 2)))
  const seen = rows.slice(from, from + room)
  const part = rows.length > room ? `, ${whole(from + 1)} to ${whole(from + seen.length)}` : ''
  const before = width - (tail?.width ?? 0)
  const withTail = (/** @type {Line} */ own, /** @type {Line} */ end) =>
    tail === null ? own : [...pad(own, before), ...pad(end, tail.width)]
  const cells = (/** @type {(column: C) => Line} */ cellOf) => tableRow(list.map(cellOf), list, gap)
  return [
    groupLine(`${title}${part}`, chosen, width),
    withTail(
      marked(
        ' ',
        cells(({ name, title }) => [[title, name === sort ? 'key' : 'label']]),
      ),
      [[tail?.title ?? '', 'label']],
    ),
    ...seen.map(row => {
      const selected = isSelected(row)
      const line = absent(row, list[0].width + gap) ?? cells(column => cell(column, row))
      const own = marked(selected ? '▸' : ' ', line)
      const all = withTail(
        tail === null ? clip(own, width, '…') : clip(own, before - 1, '…'),
        tail?.line(row) ?? [],
      )
      return selected ? bar(all, width) : all
    }),
    withStyle(marked(' ', cells(total)), 'header'),
  ]
}

/** @param {string} mark @param {Line} line @returns {Line} */
const marked = (mark, line) => [[mark, ''], ...line]

/** In one colour: several would make several bars. @param {Line} line @param {number} width @returns {Line} */
const bar = (line, width) =>
  pad(line, width).map(([text, style]) => [
    text,
    /\b(?:warn|bad)\b/.test(style) ? 'header selected' : 'selected',
  ])

/** @param {string} title @param {Chosen<Column>} chosen @param {number} width */
function groupLine(title, { list, gap }, width) {
  /** @type {Line} */
  const line = [
    ['─ ', 'border'],
    [title, 'header'],
    [' ', ''],
  ]
  let at = title.length + 3
  let column = MARK
  for (let first = 0; first < list.length; ) {
    let last = first
    let span = list[first].width
    while (last + 1 < list.length && list[last + 1].group === list[first].group)
      span += gap + list[++last].width
    const { group } = list[first]
    const start = column + span - group.length - 2
    if (group !== '' && start > at) {
      line.push(['─'.repeat(start - at), 'border'], [` ${group} `, 'label'])
      at = start + group.length + 2
    }
    column += span + gap
    first = last + 1
  }
  if (at < width) line.push(['─'.repeat(width - at), 'border'])
  return line
}
