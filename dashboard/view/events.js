import { clock, mark } from '../format.js'
import { BACK, levelStyle, rule, scrolled } from '../panels/parts.js'
import { clip } from '../terminal/line.js'

/**
 * @typedef {import('../terminal/line.js').Line} Line
 * @typedef {{time: number, level: string, text: string}} Event
 */

/** @type {Line} */
const NOTHING = [[' nothing has happened yet', 'label']]

/**
 * @param {Event} event
 * @param {{colors: boolean}} look
 * @returns {Line}
 */
function eventText({ time, level, text }, { colors }) {
  const state = level === 'error' ? 'bad' : level === 'warn' ? 'warn' : 'good'
  return [
    [` ${clock(time)} `, 'label'],
    [colors ? '' : `${mark(state)} `, ''],
    [text, levelStyle(level)],
  ]
}

/**
 * @param {readonly Event[]} events
 * @param {Pick<import('./state.js').ViewState<any>, 'look' | 'notice'>} state
 * @param {number} room lines, at least one
 * @returns {Line[]} the newest ones; an answer to a key takes a place for a moment
 */
export function newestEvents(events, { look, notice }, room) {
  const lines = events.slice(-room).map(event => eventText(event, look))
  if (notice !== null) {
    if (lines.length === room) lines.shift()
    lines.push([
      [` ${clock(notice.at)} `, 'label'],
      [notice.text, notice.style],
    ])
  }
  return lines.length === 0 ? [NOTHING] : lines
}

/**
 * All events that are known, the newest ones first.
 *
 * @template {{view: string, scroll: number, look: {unicode: boolean, colors: boolean}}} State
 * @param {(state: State) => readonly Event[] | null} eventsOf null: there is no picture yet
 * @returns {import('./screen.js').Panel<State>}
 */
export const eventListOf = eventsOf => ({
  name: 'events',
  visible: state => eventsOf(state) !== null && state.view === 'events',
  rows: () => ({ least: 3, most: Number.POSITIVE_INFINITY }),
  turn: 3,

  draw(state, width, rows) {
    const events = (eventsOf(state) ?? []).toReversed()
    const lines = events.map(event => clip(eventText(event, state.look), width, '…'))
    return [
      rule(`events, ${events.length}, the newest first`, width, BACK),
      ...(lines.length === 0 ? [NOTHING] : scrolled(lines, rows - 1, state.scroll)),
    ]
  },
})
