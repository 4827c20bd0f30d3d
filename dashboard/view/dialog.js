import { clipText, pad, visibleWidth, width as widthOf } from '../terminal/line.js'

/**
 * @typedef {import('../terminal/line.js').Line} Line
 *
 * @typedef {object} Question
 * @property {string} title
 * @property {Line} text
 * @property {[key: string, text: string][]} keys
 */

/** Columns between the sides of the box, at least. */
const LEAST = 40

/**
 * A question, in front of everything.
 *
 * @param {Line[]} lines
 * @param {{columns: number, rows: number}} size of the terminal
 * @param {Question} question
 * @returns {Line[]}
 */
export function withQuestion(lines, { columns, rows }, { title, text, keys }) {
  /** @type {Line} */
  const choice = keys.flatMap(
    ([key, what]) =>
      /** @type {Line} */ ([
        [` ${key} `, 'key selected'],
        [` ${what}   `, 'value'],
      ]),
  )
  const inner = Math.min(columns - 4, Math.max(widthOf(text), widthOf(choice), title.length + 4, LEAST))
  const row = (/** @type {Line} */ line) =>
    /** @type {Line} */ ([['│ ', 'accent'], ...pad(line, inner, 'left', '…'), [' │', 'accent']])
  /** @type {Line[]} */
  const box = [
    [
      ['╭ ', 'accent'],
      [title, 'header'],
      [` ${'─'.repeat(Math.max(0, inner - title.length))}╮`, 'accent'],
    ],
    row(text),
    row([]),
    row(choice),
    [[`╰${'─'.repeat(inner + 2)}╯`, 'accent']],
  ]
  const left = Math.max(0, Math.floor((columns - inner - 4) / 2))
  const top = Math.max(0, Math.floor((rows - box.length) / 2))
  return lines.map((line, row) => {
    const front = box[row - top]
    return front === undefined ? line : [...pad(line, left), ...front, ...skip(line, left + inner + 4)]
  })
}

/**
 * @param {Line} line
 * @param {number} columns
 * @returns {Line} what stands to the right of so many columns
 */
function skip(line, columns) {
  /** @type {Line} */
  const rest = []
  let left = columns
  for (const [text, style] of line) {
    const width = visibleWidth(text)
    if (left <= 0) rest.push([text, style])
    else if (width > left) rest.push([text.slice(clipText(text, left).length), style])
    left -= width
  }
  return rest
}
