import { clock, mark } from '../format.js'
import { shown } from '../picture.js'
import { levelStyle, rule, scrolled } from './parts.js'

/**
 * @typedef {import('./panel.js').Line} Line
 * @typedef {import('../state.js').State} State
 */

/** Rows of the newest events on a high terminal. */
const MOST = 6
/** Rows of a terminal from which on there are more than one. */
const HIGH = 40

/**
 * What has happened last; an answer to a key takes its place for a moment.
 * @type {import('./panel.js').Panel}
 */
export const eventLine = {
  name: 'event line',
  visible: state => shown(state).snapshot !== null && state.view !== 'events',
  rows: ({ size, view, log }) => ({
    least: 1,
    most: size.rows >= HIGH && view === 'main' && !log.on ? MOST + 1 : 1,
  }),
  turn: 4,

  draw(state, width, rows) {
    const { events } = shown(state)
    const { notice } = state
    const titled = rows > 1
    const room = titled ? rows - 1 : 1
    /** @type {Line[]} */
    const lines = events.slice(-room).map(event => eventText(event, state.look))
    if (notice !== null) {
      if (lines.length === room) lines.shift()
      lines.push([
        [` ${clock(notice.at)} `, 'label'],
        [notice.text, notice.style],
      ])
    }
    if (lines.length === 0) lines.push([[' nothing has happened yet', 'label']])
    return titled ? [rule('events', width), ...lines] : lines
  },
}

/**
 * All that are known, the newest ones first.
 * @type {import('./panel.js').Panel}
 */
export const eventList = {
  name: 'events',
  visible: state => shown(state).snapshot !== null && state.view === 'events',
  rows: () => ({ least: 3, most: Number.POSITIVE_INFINITY }),
  turn: 3,

  draw(state, width, rows) {
    const events = shown(state).events.toReversed()
    const lines = events.map(event => eventText(event, state.look))
    if (lines.length === 0) lines.push([[' nothing has happened yet', 'label']])
    const title = `events, ${events.length}, the newest first`
    return [
      rule(title, width, [
        ['esc', 'key'],
        [' back', 'label'],
      ]),
      ...scrolled(lines, rows - 1, state.scroll),
    ]
  },
}

/**
 * @param {import('../../src/stats/schema.js').GatewayEvent} event
 * @param {State['look']} look
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
