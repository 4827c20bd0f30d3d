import { clock, duration } from '../format.js'
import { isStale, shown } from '../picture.js'
import { centred } from '../view/centred.js'

/** @typedef {import('../state.js').State} State */

/**
 * Why the figures are not those of this second: it is there only when they are not.
 * @type {import('./panel.js').Panel}
 */
export const status = {
  name: 'status',
  visible: state => (isStale(state) && shown(state).snapshot !== null) || state.frozen !== null,
  rows: () => ({ least: 1, most: 1 }),
  turn: 1,

  draw(state, width) {
    const time = shown(state).snapshot?.time
    const figures = time === undefined ? '' : `; the figures are those of ${clock(time)}`
    const [text, style] = isStale(state)
      ? [`${troubleOf(state)}${figures}`, state.link.state === 'connecting' ? 'warn' : 'bad']
      : [`paused${time === undefined ? '' : ` at ${clock(time)}`}; p goes on`, 'warn']
    return [[[` ${text} `.padEnd(width), `${style} selected`]]]
  },
}

/**
 * @param {State} state of which the figures are old
 * @returns {string}
 */
export function troubleOf({ link, heard, now }) {
  switch (link.state) {
    case 'open':
      return `nothing has come for ${duration(now - heard)}: the gateway's primary process is stuck or stopped`
    case 'refused':
      return link.text
    case 'lost':
      return `gateway gone, trying again for ${duration(now - link.since)} (${link.text})`
    case 'connecting':
      return 'connecting'
  }
}

/** @type {Record<import('../source/source.js').LinkState, string>} */
const STYLES = { connecting: 'label', open: 'label', lost: 'warn', refused: 'bad' }

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
    const { link } = state
    const said =
      link.state === 'open'
        ? 'connected; the first figures come within a second'
        : link.state === 'lost'
          ? `${link.text}; trying again for ${duration(state.now - link.since)}`
          : troubleOf(state)
    return centred(
      [
        ['Halley', 'title'],
        [state.source, 'accent'],
        ['', ''],
        ...wrapped(said, Math.max(10, width - 8)).map(
          text => /** @type {import('./panel.js').Span} */ ([text, STYLES[link.state]]),
        ),
      ],
      width,
      rows,
    )
  },
}

/**
 * @param {string} text
 * @param {number} width columns
 * @returns {string[]} its lines, broken between words
 */
function wrapped(text, width) {
  /** @type {string[]} */
  const lines = ['']
  for (const word of text.split(' ')) {
    const line = `${lines.at(-1)} ${word}`.trimStart()
    if (line.length <= width) lines[lines.length - 1] = line
    else lines.push(word)
  }
  return lines
}
