import { onKey } from './keys.js'
import { isStale, SPAN, toPoint, withHistory } from './picture.js'
import { initialView, onTick, withPoint, withReply } from './view/state.js'

/**
 * @typedef {import('../src/stats/schema.js').Snapshot} Snapshot
 * @typedef {import('../src/stats/schema.js').GatewayEvent} GatewayEvent
 * @typedef {import('../src/stats/schema.js').StatsCommand} StatsCommand
 * @typedef {import('./picture.js').Moment} Moment
 *
 * @typedef {object} Picture what came from the gateway
 * @property {Snapshot | null} snapshot
 * @property {Moment[]} history up to 300 s, one a second
 * @property {{lines: Moment[], areas: Moment[]}} charted the history as charts show it: it moves on when a dot of a line, or a column of an
 *   area, is over, and not with every second
 * @property {GatewayEvent[]} events oldest first
 *
 * @typedef {'quit' | 'stop' | 'leave' | 'refused'} Reason quit: the view; stop, leave: the gateway; refused: there never was a picture
 * @typedef {{type: 'send', command: StatsCommand} | {type: 'finish', reason: Reason, text?: string}} Effect
 *
 * @typedef {{kind: 'restart', worker: number} | {kind: 'gc', worker: number | null} | {kind: 'quit'}} Dialog
 *
 * @typedef {object} OwnState what only this view has
 * @property {boolean} owner whether this dashboard belongs to the gateway's own terminal
 * @property {string} key that the gateway has generated, to be shown; '' if none
 * @property {string} source name of the source
 * @property {{state: import('./source/link.js').LinkState, text: string, since: number}} link
 * @property {{on: boolean, lines: string[]}} log
 * @property {'main' | 'detail' | 'help' | 'events'} view
 * @property {number | null} selected index of a worker
 * @property {Dialog | null} dialog
 * @property {Effect[]} effects for the caller of reduce() to carry out
 *
 * @typedef {import('./view/state.js').ViewState<Picture> & OwnState} State everything that the screen is made of; never changed, always
 *   replaced
 * @typedef {import('./view/screen.js').Panel<State>} Panel
 *
 * @typedef {{type: 'message', message: import('../src/stats/schema.js').StatsMessage, now: number}
 *   | {type: 'link', state: import('./source/link.js').LinkState, text: string, now: number}
 *   | import('./view/state.js').ViewAction} Action
 */

/** Seconds after which charts move on. A dot of a line stands for 2 s at least, a column of an area for 4, up to 75 columns. */
const LINES = 2
const AREAS = 4
const MAX_EVENTS = 200
const MAX_LOG = 500
const MAX_LOG_LINE = 2000

/**
 * @param {object} options
 * @param {{unicode: boolean, colors: boolean}} options.look
 * @param {{columns: number, rows: number}} options.size
 * @param {string} options.source
 * @param {number} options.now
 * @param {boolean} [options.owner]
 * @param {string} [options.key]
 * @returns {State}
 */
export function initialState({ look, size, source, now, owner = false, key = '' }) {
  const live = { snapshot: null, history: [], charted: { lines: [], areas: [] }, events: [] }
  return {
    ...initialView({ look, size, now, sort: 'worker', live: /** @type {Picture} */ (live) }),
    owner,
    key,
    source,
    link: { state: 'connecting', text: '', since: now },
    log: { on: false, lines: [] },
    view: 'main',
    selected: null,
    dialog: null,
    effects: [],
  }
}

/**
 * @param {State} before
 * @param {Action} action
 * @returns {State} the same one when nothing has changed that is seen or to be done
 */
export function reduce(before, action) {
  const state = before.effects.length > 0 ? { ...before, effects: [] } : before
  switch (action.type) {
    case 'message':
      return onMessage(state, action.message, action.now)
    case 'link':
      return onLink(state, action)
    case 'key':
      return onKey({ ...state, now: action.now }, action.name)
    case 'size':
      return { ...state, size: { columns: action.columns, rows: action.rows } }
    case 'tick':
      return onTick(state, action.now, isStale)
  }
}

/**
 * @param {State} state
 * @param {import('../src/stats/schema.js').StatsMessage} message
 * @param {number} now
 * @returns {State}
 */
function onMessage(state, message, now) {
  const { live, log } = state
  switch (message.type) {
    case 'hello': {
      const history = withHistory(live.history, message.history)
      // A gateway says its last events again when we come back to it.
      const from = message.events[0]?.time ?? Number.POSITIVE_INFINITY
      const events = [...live.events.filter(({ time }) => time < from), ...message.events].slice(-MAX_EVENTS)
      const snapshot = message.history.at(-1) ?? live.snapshot
      return {
        ...state,
        now,
        receivedAt: now,
        live: { snapshot, history, charted: { lines: history, areas: history }, events },
      }
    }
    case 'snapshot': {
      const { snapshot } = message
      const events =
        snapshot.events.length > 0 ? [...live.events, ...snapshot.events].slice(-MAX_EVENTS) : live.events
      const history = withPoint(live.history, toPoint(snapshot), SPAN)
      const charted = moved(live.charted, history, Math.round(snapshot.time / 1000))
      return forgotten({ ...state, now, receivedAt: now, live: { snapshot, history, charted, events } })
    }
    case 'log': {
      if (!log.on) return state
      const lines = [...log.lines, message.line.slice(0, MAX_LOG_LINE)].slice(-MAX_LOG)
      return { ...state, now, log: { on: true, lines } }
    }
    case 'done':
      return onDone({ ...state, now }, message)
  }
}

/**
 * @param {Picture['charted']} charted
 * @param {Moment[]} history
 * @param {number} second
 * @returns {Picture['charted']}
 */
function moved(charted, history, second) {
  const first = history.length < 3
  if (!first && second % LINES !== 0) return charted
  return { lines: history, areas: first || second % AREAS === 0 ? history : charted.areas }
}

/**
 * @param {State} state
 * @param {import('../src/stats/schema.js').DoneMessage} done
 * @returns {State}
 */
function onDone(state, { command, error }) {
  if (error === null && command === 'log') return state
  const what = command === 'gc' ? 'garbage collection' : command
  const log = command === 'log' ? { ...state.log, on: false } : state.log
  return withReply({ ...state, log }, what, error)
}

/**
 * @param {State} state
 * @param {{state: import('./source/link.js').LinkState, text: string, now: number}} link
 * @returns {State}
 */
function onLink(state, { state: link, text, now }) {
  /** @type {Effect[]} */
  const effects = []
  if (link === 'open' && state.log.on) effects.push({ type: 'send', command: { type: 'log', on: true } })
  // A wrong key, or a version that is not ours, is said where it stays to be read.
  if (link === 'refused' && state.live.snapshot === null)
    effects.push({ type: 'finish', reason: 'refused', text })
  // Tries that fail say the same again and again: what counts is since when.
  const down = link !== 'open' && state.link.state !== 'open' && state.link.state !== 'connecting'
  return { ...state, now, link: { state: link, text, since: down ? state.link.since : now }, effects }
}

/**
 * @param {State} state
 * @returns {State} a selected worker, or a question about one, that is not there any more is forgotten
 */
function forgotten(state) {
  const there = (/** @type {number | null} */ worker) =>
    worker === null || state.live.snapshot?.workers.some(({ index }) => index === worker)
  const selected = there(state.selected) ? state.selected : null
  const view = selected === null && state.view === 'detail' ? 'main' : state.view
  if (selected === state.selected && view === state.view) return state
  return { ...state, selected, view, dialog: null }
}
