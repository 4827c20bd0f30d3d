import { shown } from '../picture.js'
import { eventListOf, newestEvents } from '../view/events.js'
import { rule } from './parts.js'

/** @typedef {import('../state.js').State} State */

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
    return rows > 1
      ? [rule('events', width), ...newestEvents(events, state, rows - 1)]
      : newestEvents(events, state, 1)
  },
}

export const eventList = eventListOf((/** @type {State} */ state) =>
  shown(state).snapshot === null ? null : shown(state).events,
)
