// Panels shared by the dashboard and `halley fleet status`; parameters set what differs.

import { clock } from '../../src/base/format.js'
import { healthMark } from '../health.js'
import { clip, clipText, lineWidth, pad, sideBySide, visibleWidth } from '../terminal/line.js'
import { BACK, centred, fitItems, named, rule, scrolled, wrapped } from './parts.js'
import { shown } from './state.js'

/** @import { Line, Span } from '../terminal/line.js' */
/** @import { Panel } from './screen.js' */
/** @import { ViewState } from './state.js' */

/** @typedef {readonly [key: string, text: string]} Key */
/** @typedef {{time: number, level: string, text: string}} Event */

/**
 * @template {ViewState<any>} State
 * @param {(state: State) => boolean} isStale
 * @param {(state: State, time: string) => Span} warning text while stale; time: of the snapshot
 * @returns {Panel<State>}
 */
export const statusOf = (isStale, warning) => ({
  name: 'status',
  visible: state => shown(state).snapshot !== null && (isStale(state) || state.frozen !== null),
  rows: () => ({ min: 1, max: 1 }),
  priority: 1,

  draw(state, width) {
    const time = clock(shown(state).snapshot.time)
    const [text, style] = isStale(state)
      ? warning(state, time)
      : [`paused at ${time}; press p to resume`, 'warn']
    return [[[` ${text} `.padEnd(width), `${style} selected`]]]
  },
})

/**
 * @template {ViewState<any> & {view: string, source: string}} State
 * @param {string} title @param {(state: State) => Span} message @returns {Panel<State>}
 */
export const waitingOf = (title, message) => ({
  name: 'waiting',
  visible: state => shown(state).snapshot === null && state.view !== 'help',
  rows: () => ({ min: 1, max: Number.POSITIVE_INFINITY }),
  priority: 3,

  draw(state, width, rows) {
    const [text, style] = message(state)
    const lines = wrapped(text, Math.max(10, width - 8)).map(line => /** @type {Span} */ ([line, style]))
    return centred([[title, 'title'], [state.source, 'accent'], ['', ''], ...lines], width, rows)
  },
})

/** @type {Line} */
const NO_EVENTS = [[' no events yet', 'label']]

/** @type {Record<string, {text: string, health: import('../health.js').Health}>} */
const LEVELS = { warn: { text: 'warn', health: 'warn' }, error: { text: 'bad', health: 'bad' } }

/** @param {Event} event @param {{colors: boolean}} look @returns {Line} */
function eventText({ time, level, text }, { colors }) {
  const { text: style, health } = LEVELS[level] ?? { text: 'value', health: 'good' }
  return [
    [` ${clock(time)} `, 'label'],
    [colors ? '' : `${healthMark(health)} `, ''],
    [text, style],
  ]
}

/**
 * The last line briefly shows the reply to a key.
 * @param {readonly Event[]} events @param {Pick<ViewState<any>, 'look' | 'notice'>} state
 * @param {number} room lines, at least one
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
  return lines.length === 0 ? [NO_EVENTS] : lines
}

/**
 * @template {{view: string, scroll: number, look: {unicode: boolean, colors: boolean}}} State
 * @param {(state: State) => readonly Event[] | null} eventsOf null: no snapshot yet
 * @returns {Panel<State>}
 */
export const eventListOf = eventsOf => ({
  name: 'events',
  visible: state => eventsOf(state) !== null && state.view === 'events',
  rows: () => ({ min: 3, max: Number.POSITIVE_INFINITY }),
  priority: 3,

  draw(state, width, rows) {
    const events = (eventsOf(state) ?? []).toReversed()
    const lines = events.map(event => clip(eventText(event, state.look), width, '…'))
    return [
      rule(`events, ${events.length}, newest first`, width, BACK),
      ...(lines.length === 0 ? [NO_EVENTS] : scrolled(lines, rows - 1, state.scroll)),
    ]
  },
})

/** @type {readonly Key[]} */
const KEYS = [
  ['h ?', 'this help'],
  ['↑ ↓ k j', 'select a row; pgup, pgdn, home, end'],
  ['enter', 'show its details; esc to go back'],
  ['s S', 'sort by the next column, reverse'],
  ['c tab', 'next chart'],
  ['e', 'all events'],
  ['p', 'pause, resume'],
  ['ctrl-l', 'redraw the screen'],
]

/**
 * @template {{view: string, scroll: number}} State
 * @param {object} parts @param {(state: State) => Line[]} [parts.first] above the keys
 * @param {(state: State) => readonly Key[]} parts.keys of this view only
 * @param {(state: State) => Line[]} [parts.limits] above `words`
 * @param {readonly (readonly [name: string, text: string])[]} parts.words @returns {Panel<State>}
 */
export const helpOf = ({ first = () => [], keys, limits = () => [], words }) => ({
  name: 'help',
  visible: state => state.view === 'help',
  rows: () => ({ min: 3, max: Number.POSITIVE_INFINITY }),
  priority: 3,

  draw(state, width, rows) {
    /** @param {string} name @param {string} text @param {string} nameStyle @param {string} textStyle @returns {Line} */
    const pair = (name, text, nameStyle, textStyle) => [
      [name, nameStyle],
      [text, textStyle],
    ]
    const names = Math.max(...words.map(([name]) => name.length)) + 1
    const left = [
      ...first(state),
      ...[...KEYS, ...keys(state)].map(([key, text]) => pair(` ${key.padEnd(10)}`, text, 'key', 'value')),
    ]
    const right = [
      ...limits(state),
      ...words.map(([name, text]) => pair(name.padEnd(names), text, 'accent', 'label')),
    ]
    const half = Math.max(...left.map(lineWidth)) + 2
    const lines =
      width >= half + 2 + Math.max(...right.map(lineWidth))
        ? sideBySide([left, right], [half, width - half - 2], 2)
        : [...left, [], ...right.map(line => /** @type {Line} */ ([[' ', ''], ...line]))]
    return [rule('help', width, BACK), ...scrolled(lines, rows - 1, state.scroll)]
  },
})

/**
 * @template State
 * @param {(state: State) => Key[]} keysOf by importance; the first is always shown, at the end
 * @returns {Panel<State>}
 */
export const footerOf = keysOf => ({
  name: 'footer',
  visible: () => true,
  rows: () => ({ min: 1, max: 1 }),
  priority: 0,

  draw(state, width) {
    const [quit, ...others] = keysOf(state).map(([key, text]) => named(key, [text, 'label'], 'key'))
    const shown = fitItems(others, width - 4 - lineWidth(quit))
    return [[[' ', ''], ...shown, [shown.length > 0 ? '  ' : '', ''], ...quit]]
  },
})

/** @typedef {{title: string, text: Line, keys: Key[]}} Question */

const LEAST = 40

/** @param {Line[]} lines @param {{columns: number, rows: number}} size @param {Question} question @returns {Line[]} */
export function withQuestion(lines, { columns, rows }, { title, text, keys }) {
  /** @type {Line} */
  const choice = keys.flatMap(
    ([key, what]) =>
      /** @type {Line} */ ([
        [` ${key} `, 'key selected'],
        [` ${what}   `, 'value'],
      ]),
  )
  const inner = Math.min(columns - 4, Math.max(lineWidth(text), lineWidth(choice), title.length + 4, LEAST))
  const row = (/** @type {Line} */ line) =>
    /** @type {Line} */ ([['│ ', 'accent'], ...pad(line, inner, 'left', '…'), [' │', 'accent']])
  /** @type {Line[]} */
  const box = [
    [
      ['╭ ', 'accent'],
      [title, 'header'],
      [` ${'─'.repeat(Math.max(0, inner - title.length))}╮`, 'accent'],
    ],
    row(text),
    row([]),
    row(choice),
    [[`╰${'─'.repeat(inner + 2)}╯`, 'accent']],
  ]
  const left = Math.max(0, Math.floor((columns - inner - 4) / 2))
  const top = Math.max(0, Math.floor((rows - box.length) / 2))
  return lines.map((line, row) => {
    const front = box[row - top]
    return front === undefined ? line : [...pad(line, left), ...front, ...skip(line, left + inner + 4)]
  })
}

/** @param {Line} line @param {number} columns @returns {Line} the part right of `columns` */
function skip(line, columns) {
  /** @type {Line} */
  const rest = []
  let left = columns
  for (const [text, style] of line) {
    const width = visibleWidth(text)
    if (left <= 0) rest.push([text, style])
    else if (width > left) rest.push([text.slice(clipText(text, left).length), style])
    left -= width
  }
  return rest
}
