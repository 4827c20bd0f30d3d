import { clock } from '../format.js'
import { rule } from './parts.js'

/** @typedef {import('./panel.js').Line} Line */

/** Levels of the log by their numbers. */
const LEVELS = /** @type {Record<number, [name: string, style: string]>} */ ({
  10: ['TRACE', 'label'],
  20: ['DEBUG', 'label'],
  30: ['INFO ', 'good'],
  40: ['WARN ', 'warn'],
  50: ['ERROR', 'bad'],
  60: ['FATAL', 'bad'],
})
/** Fields that are shown elsewhere, or say nothing here. */
const LEFT_OUT = new Set(['level', 'time', 'msg', 'hostname'])

/**
 * The gateway's log, while somebody looks.
 * @type {import('./panel.js').Panel}
 */
export const log = {
  name: 'log',
  visible: ({ log, view }) => log.on && view !== 'help',
  rows: ({ size }) => ({ least: 4, most: Math.max(4, Math.floor(size.rows / 4)) }),
  turn: 5,

  draw({ log }, width, rows) {
    const lines = log.lines.slice(1 - rows).map(logLine)
    if (lines.length === 0) lines.push([[' nothing has been logged since this was opened', 'label']])
    return [
      rule('log', width, [
        ['l', 'key'],
        [' off', 'label'],
      ]),
      ...lines,
    ]
  },
}

/**
 * @param {string} text one line of the log, JSON
 * @returns {Line}
 */
export function logLine(text) {
  let entry
  try {
    entry = JSON.parse(text)
  } catch {}
  if (typeof entry !== 'object' || entry === null) return [[` ${text}`, 'value']]
  const [name, style] = LEVELS[entry.level] ?? [String(entry.level ?? '').padEnd(5), 'label']
  const time = new Date(entry.time).getTime()
  const rest = Object.entries(entry)
    .filter(([field]) => !LEFT_OUT.has(field))
    .map(([field, value]) => `${field}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
  return [
    [` ${Number.isNaN(time) ? '' : clock(time)} `, 'label'],
    [`${name} `, style],
    [String(entry.msg ?? ''), 'value'],
    [`  ${rest.join(' ')}`, 'label'],
  ]
}
