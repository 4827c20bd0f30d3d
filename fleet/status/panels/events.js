import { bar } from '../../../dashboard/chart.js'
import { clip, pad, sideBySide } from '../../../dashboard/terminal/line.js'
import { eventListOf, newestEvents } from '../../../dashboard/view/panels.js'
import { BACK, fitItems, rule, scrolled } from '../../../dashboard/view/parts.js'
import { shown } from '../../../dashboard/view/state.js'
import { quantity, share } from '../../../src/base/format.js'

/**
 * @typedef {import('../../../dashboard/terminal/line.js').Line} Line
 * @typedef {import('../state.js').State} State
 */

/** Rows of the newest events on a high terminal. */
const MOST = 7
/** Rows of a terminal from which on there are several. */
const HIGH = 40
/** Columns of a terminal from which on faults are beside the events. */
const WIDE = 100
/** Columns of the kind of a fault. */
const KIND = 40

/** @type {Line} */
const NO_FAULTS = [[' no faults', 'good']]

/** @param {State} state @returns {[kind: string, times: number][]} the most frequent first */
const faultsOf = state => Object.entries(shown(state).snapshot?.faults ?? {}).sort(([, a], [, b]) => b - a)

/** The faults; on a high terminal they are beside the events. @type {import('../state.js').Panel} */
export const faultLine = {
  name: 'fault line',
  visible: state => state.view === 'main' && !isHigh(state) && faultsOf(state).length > 0,
  rows: () => ({ least: 1, most: 1 }),
  priority: 7,
  draw(state, width) {
    const items = faultsOf(state).map(
      ([kind, times]) =>
        /** @type {Line} */ ([
          [`${kind} `, 'label'],
          [quantity(times), 'warn'],
        ]),
    )
    return [[[' faults ', 'header'], ...fitItems(items, width - 9)]]
  },
}

/** @param {State} state */
const isHigh = ({ size }) => size.rows >= HIGH && size.columns >= WIDE

/** The newest events; for a moment the reply to a key. @type {import('../state.js').Panel} */
export const eventLine = {
  name: 'event line',
  visible: state => shown(state).snapshot !== null && state.view !== 'events',
  rows: state => {
    if (!isHigh(state) || state.view !== 'main') return { least: 1, most: 1 }
    const lines = Math.max(2, shown(state).snapshot?.events.length ?? 0, faultsOf(state).length)
    return { least: 1, most: Math.min(MOST, lines + 1) }
  },
  priority: 4,

  draw(state, width, rows) {
    const room = Math.max(1, rows - 1)
    const lines = newestEvents(shown(state).snapshot?.events ?? [], state, room)
    if (rows === 1) return lines
    const left = Math.floor(width * 0.62)
    const right = width - left - 2
    const faults = faultRows(state, right).slice(0, room)
    return sideBySide(
      [
        [rule('events', left), ...lines.map(line => clip(line, left, '…'))],
        [rule('faults', right), ...(faults.length > 0 ? faults : [NO_FAULTS])],
      ],
      [left, right],
      2,
    )
  },
}

export const eventList = eventListOf((/** @type {State} */ state) => shown(state).snapshot?.events ?? null)

/** All kinds of faults. @type {import('../state.js').Panel} */
export const faultList = {
  name: 'faults',
  visible: state => shown(state).snapshot !== null && state.view === 'faults',
  rows: () => ({ least: 3, most: Number.POSITIVE_INFINITY }),
  priority: 5,

  draw(state, width, rows) {
    const lines = faultRows(state, width)
    return [
      rule('faults of all drones', width, BACK),
      ...(lines.length > 0 ? scrolled(lines, rows - 1, state.scroll) : [NO_FAULTS]),
    ]
  },
}

/** @param {State} state @param {number} width @returns {Line[]} a bar per kind */
function faultRows(state, width) {
  const faults = faultsOf(state)
  const all = faults.reduce((sum, [, times]) => sum + times, 0)
  const kind = Math.max(10, Math.min(KIND, width - 28))
  const size = Math.max(6, Math.min(40, width - kind - 17))
  return faults.map(([name, times]) => [
    [' ', ''],
    ...pad([[name, 'value']], kind, 'left', '…'),
    [quantity(times).padStart(9), 'warn'],
    [` ${share(times / all).padStart(4)} `, 'label'],
    ...bar(times / all, size, state.look.unicode, 'warn'),
  ])
}
