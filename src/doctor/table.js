// The findings as a table for a terminal.

import { count } from './finding.js'

/** @import { Diagnosis } from './examine.js' */

const MARKS = { ok: '✓', tight: '!', 'too low': '✗', 'cannot tell': '?' }
const COLOURS = { ok: 32, tight: 33, 'too low': 31, 'cannot tell': 36 }
const FAINT = 2
/** Column widths: mark with name (the longest sysctl key has 30 letters), and current value. */
const NAME = 34
const IS = 24
const WIDTH = 80

/** @param {string} text @param {number} width @returns {string[]} lines; a longer word gets its own line */
function wrap(text, width) {
  const lines = ['']
  for (const word of text.split(' ')) {
    const last = lines[lines.length - 1]
    if (last === '') lines[lines.length - 1] = word
    else if (last.length + 1 + word.length <= width) lines[lines.length - 1] = `${last} ${word}`
    else lines.push(word)
  }
  return lines
}

/** @param {number} value @returns {number} rounded to three digits */
function rounded(value) {
  const step = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, value))) - 2)
  return Math.floor(value / step) * step
}

/** @param {Diagnosis} diagnosis @returns {string} one line */
export function summary({ aim, findings, largest, obstacles }) {
  const what = `${count(aim.connections)} connections (${aim.role})`
  const of = (/** @type {string} */ status) => findings.filter(found => found.status === status).length
  if (obstacles.length > 0)
    return `${what} cannot be reached: ${obstacles.join(', ')}. The maximum now is about ${count(rounded(largest ?? 0))}.`
  const [tight, dark] = [of('tight'), of('cannot tell')]
  const rest = [...(tight > 0 ? [`${tight} to check`] : []), ...(dark > 0 ? [`${dark} unknown`] : [])].join(
    ', ',
  )
  const most = largest === null ? '' : ` (maximum: about ${count(rounded(largest))})`
  return `${what} can be reached${most}${rest === '' ? '' : `; ${rest}`}.`
}

/**
 * @param {Diagnosis} diagnosis @param {{colours?: boolean}} [options]
 * @returns {string} lines of at most 80 columns
 */
export function table(diagnosis, { colours = false } = {}) {
  const paint = (/** @type {number} */ code, /** @type {string} */ text) =>
    colours ? `\x1b[${code}m${text}\x1b[0m` : text
  const row = (/** @type {string[]} */ [mark, name, is, should]) => {
    const cells = [[`${mark} ${name}`], wrap(is, IS - 2), wrap(should, WIDTH - NAME - IS)]
    const height = Math.max(...cells.map(({ length }) => length))
    return Array.from({ length: height }, (_, i) =>
      [(cells[0][i] ?? '').padEnd(NAME), (cells[1][i] ?? '').padEnd(IS), cells[2][i] ?? '']
        .join('')
        .trimEnd(),
    )
  }
  const lines = [paint(FAINT, row([' ', '', 'is', 'should be'])[0])]
  let group = ''
  for (const found of diagnosis.findings) {
    if (found.group !== group) lines.push('', found.group)
    group = found.group
    const code = COLOURS[found.status]
    const [first, ...more] = row([MARKS[found.status], found.id, found.is, found.should])
    lines.push(paint(code, first.slice(0, 1)) + first.slice(1), ...more)
    for (const line of wrap(found.why, WIDTH - 4)) lines.push(paint(FAINT, `    ${line}`))
  }
  lines.push('')
  for (const note of diagnosis.notes) lines.push(...wrap(`Note: ${note}.`, WIDTH), '')
  const worst = diagnosis.obstacles.length > 0 ? 'too low' : 'ok'
  for (const line of wrap(summary(diagnosis), WIDTH)) lines.push(paint(COLOURS[worst], line))
  return `${lines.join('\n')}\n`
}
