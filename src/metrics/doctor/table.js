import { escapeControls, wrap as wrapPlain } from '../../base/terminal-text.js'
import { count, countOf } from './finding.js'

/** @import { Diagnosis } from './examine.js' */

const MARKS = { ok: '✓', tight: '!', 'too low': '✗', 'cannot tell': '?' }
const COLOURS = { ok: 32, tight: 33, 'too low': 31, 'cannot tell': 36 }
const FAINT = 2
/** Columns of mark and name (the longest sysctl key has 30 letters), current value, and wanted value. */
const NAME_WIDTH = 34
const CURRENT_WIDTH = 24
const WIDTH = 80

/** Untrusted text. @type {typeof wrapPlain} */
const wrap = (text, width) => wrapPlain(escapeControls(text), width)

/** Down to three significant digits. @param {number} value */
function rounded(value) {
  const step = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, value))) - 2)
  return Math.floor(value / step) * step
}

/** @param {number} value */
const workers = value => countOf(value, 'worker')

/** @param {Diagnosis} diagnosis */
export function summary({ aim, findings, largest, obstacles, workerCounts: { needed, holds, most } }) {
  const what = `${count(aim.connections)} connections (${aim.role})`
  const server = aim.role === 'server'
  const about = (/** @type {number} */ value) => `about ${count(rounded(value))}`
  if (obstacles.length > 0) {
    const by = server && largest !== null && largest > 0 ? `, with ${workers(most)}` : ''
    return `${what} cannot be reached: ${obstacles.join(', ')}. The maximum now is ${about(largest ?? 0)}${by}.`
  }
  const tight = findings.filter(({ status }) => status === 'tight').length
  const unknown = findings.filter(({ status }) => status === 'cannot tell').length
  const doubts = []
  if (tight > 0) doubts.push(`${tight} to check`)
  if (unknown > 0) doubts.push(`${unknown} unknown`)
  const more = server && needed > aim.workers && holds !== null
  const reached = server ? `can be reached with ${workers(needed)}` : 'can be reached'
  const instead = more
    ? ` (\`workers: ${needed}\`; the default of ${count(aim.workers)} holds ${about(holds)})`
    : ''
  const limit = server && most !== needed ? ` with ${workers(most)}` : ''
  const maximum = largest === null ? '' : `; maximum: ${about(largest)}${limit}`
  return `${what} ${reached}${instead}${maximum}${doubts.length === 0 ? '' : `; ${doubts.join(', ')}`}.`
}

/** @param {Diagnosis} diagnosis @param {{colours?: boolean}} [options] @returns lines of at most 80 columns */
export function table(diagnosis, { colours = false } = {}) {
  const paint = (/** @type {number} */ code, /** @type {string} */ text) =>
    colours ? `\x1b[${code}m${text}\x1b[0m` : text
  const row = (/** @type {string[]} */ [mark, name, is, should]) => {
    const cells = [
      [`${mark} ${escapeControls(name)}`],
      wrap(is, CURRENT_WIDTH - 2),
      wrap(should, WIDTH - NAME_WIDTH - CURRENT_WIDTH),
    ]
    const height = Math.max(...cells.map(({ length }) => length))
    return Array.from({ length: height }, (_, i) =>
      [(cells[0][i] ?? '').padEnd(NAME_WIDTH), (cells[1][i] ?? '').padEnd(CURRENT_WIDTH), cells[2][i] ?? '']
        .join('')
        .trimEnd(),
    )
  }
  const lines = [paint(FAINT, row([' ', '', 'is', 'should be'])[0])]
  let group = ''
  for (const finding of diagnosis.findings) {
    if (finding.group !== group) lines.push('', finding.group)
    group = finding.group
    const code = COLOURS[finding.status]
    const [first, ...more] = row([MARKS[finding.status], finding.id, finding.is, finding.should])
    lines.push(paint(code, first.slice(0, 1)) + first.slice(1), ...more)
    for (const line of wrap(finding.why, WIDTH - 4)) lines.push(paint(FAINT, `    ${line}`))
  }
  lines.push('')
  for (const note of diagnosis.notes) lines.push(...wrap(`Note: ${note}.`, WIDTH), '')
  const status = diagnosis.obstacles.length > 0 ? 'too low' : 'ok'
  for (const line of wrap(summary(diagnosis), WIDTH)) lines.push(paint(COLOURS[status], line))
  return `${lines.join('\n')}\n`
}
