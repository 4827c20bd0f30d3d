import { clock } from '../../src/base/format.js'
import { eventListOf, newestEvents } from '../view/panels.js'
import { rule } from '../view/parts.js'
import { shown } from '../view/state.js'

/** @import { Panel, State } from '../state.js' */
/** @import { Line } from '../terminal/line.js' */

/** Maximum rows of events. */
const MOST = 6
/** Minimum terminal rows to show several events. */
const HIGH = 40

/** The newest events, or for a moment the reply to a key. @type {Panel} */
export const eventLine = {
  name: 'event line',
  visible: state => shown(state).snapshot !== null && state.view !== 'events',
  rows: ({ size, view, log }) => ({
    least: 1,
    most: size.rows >= HIGH && view === 'main' && !log.on ? MOST + 1 : 1,
  }),
  priority: 4,

  draw(state, width, rows) {
    const { events } = shown(state)
    return rows > 1
      ? [rule('events', width), ...newestEvents(events, state, rows - 1)]
      : newestEvents(events, state, 1)
  },
}

export const eventList = eventListOf((/** @type {State} */ state) =>
  shown(state).snapshot === null ? null : shown(state).events,
)

/** pino's level numbers. */
const LEVELS = /** @type {Record<number, [name: string, style: string]>} */ ({
  10: ['TRACE', 'label'],
  20: ['DEBUG', 'label'],
  30: ['INFO ', 'good'],
  40: ['WARN ', 'warn'],
  50: ['ERROR', 'bad'],
  60: ['FATAL', 'bad'],
})
/** Fields shown elsewhere, or useless here. */
const HIDDEN_FIELDS = new Set(['level', 'time', 'msg', 'hostname'])

/** The gateway's log, while it is on. @type {Panel} */
export const log = {
  name: 'log',
  visible: ({ log, view }) => log.on && view !== 'help',
  rows: ({ size }) => ({ least: 4, most: Math.max(4, Math.floor(size.rows / 4)) }),
  priority: 5,

  draw({ log }, width, rows) {
    const lines = log.lines.slice(1 - rows).map(logLine)
    if (lines.length === 0) lines.push([[' no log lines yet', 'label']])
    return [
      rule('log', width, [
        ['l', 'key'],
        [' off', 'label'],
      ]),
      ...lines,
    ]
  },
}

/** @param {string} text one JSON line of the log @returns {Line} */
export function logLine(text) {
  let entry
  try {
    entry = JSON.parse(text)
  } catch {}
  if (typeof entry !== 'object' || entry === null) return [[` ${text}`, 'value']]
  const [name, style] = LEVELS[entry.level] ?? [String(entry.level ?? '').padEnd(5), 'label']
  const time = new Date(entry.time).getTime()
  const rest = Object.entries(entry)
    .filter(([field]) => !HIDDEN_FIELDS.has(field))
    .map(([field, value]) => `${field}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
  return [
    [` ${Number.isNaN(time) ? '' : clock(time)} `, 'label'],
    [`${name} `, style],
    [String(entry.msg ?? ''), 'value'],
    [`  ${rest.join(' ')}`, 'label'],
  ]
}
