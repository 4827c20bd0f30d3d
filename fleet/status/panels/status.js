import { clock, duration } from '../../../dashboard/format.js'
import { centred } from '../../../dashboard/view/centred.js'
import { isStale, shown } from '../picture.js'

/** @typedef {import('./panel.js').State} State */

/**
 * Why the figures are not those of this second: it is there only when they are not.
 * @type {import('./panel.js').Panel}
 */
export const status = {
  name: 'status',
  visible: state => shown(state).snapshot !== null && (isStale(state) || state.frozen !== null),
  rows: () => ({ least: 1, most: 1 }),
  turn: 1,

  draw(state, width) {
    const time = shown(state).snapshot?.time ?? 0
    const [text, style] = isStale(state)
      ? [troubleOf(state, clock(time)), 'bad']
      : [`paused at ${clock(time)}; p goes on`, 'warn']
    return [[[` ${text} `.padEnd(width), `${style} selected`]]]
  },
}

/**
 * @param {State} state of which the figures are old
 * @param {string} time of the figures
 */
function troubleOf({ lost, heard, now }, time) {
  if (lost === null)
    return `nothing has come for ${duration(now - heard)}: controller stuck or stopped; figures of ${time}`
  if (/^no fleet is in/.test(lost.reason))
    return `the fleet was stopped ${duration(now - lost.since)} ago; figures of ${time}`
  // That it has gone is said already.
  const reason = lost.reason === '' || /^the controller has/.test(lost.reason) ? '' : ` (${lost.reason})`
  return `controller gone for ${duration(now - lost.since)}; figures of ${time}; looking for it${reason}`
}

/**
 * In the place of everything else, until there are figures.
 * @type {import('./panel.js').Panel}
 */
export const waiting = {
  name: 'waiting',
  visible: state => shown(state).snapshot === null && state.view !== 'help',
  rows: () => ({ least: 1, most: Number.POSITIVE_INFINITY }),
  turn: 3,

  draw(state, width, rows) {
    const { lost, now, heard, source } = state
    const said =
      lost === null
        ? `the first figures come within a second${now - heard > 2000 ? ` (${duration(now - heard)})` : ''}`
        : `no controller for ${duration(now - lost.since)}${lost.reason === '' ? '' : `: ${lost.reason}`}`
    return centred(
      [
        ['halley fleet', 'title'],
        [source, 'accent'],
        ['', ''],
        [said, lost === null ? 'label' : 'warn'],
      ],
      width,
      rows,
    )
  },
}
