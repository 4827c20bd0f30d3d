import { toPoint, withPoint } from './history.js'
import { onKey } from './keys.js'
import { isStale } from './picture.js'

/**
 * @typedef {import('../schema.js').FleetSnapshot} FleetSnapshot
 * @typedef {import('./history.js').Moment} Moment
 *
 * @typedef {object} Look what the terminal can show
 * @property {boolean} unicode
 * @property {boolean} colors
 *
 * @typedef {object} Picture
 * @property {FleetSnapshot | null} snapshot
 * @property {FleetSnapshot | null} previous the one before, for rates that nobody else computes
 * @property {Moment[]} history one a second
 *
 * @typedef {{type: 'command', name: string, params: Record<string, any>, what: string} | {type: 'finish'}} Effect
 * @typedef {{kind: 'restart', id: string} | {kind: 'wanted', text: string}} Dialog
 *
 * @typedef {object} State everything that the screen is made of; never changed, always replaced
 * @property {Look} look
 * @property {string} source name of the source; '' if it has none
 * @property {boolean} commands whether the controller can be told something
 * @property {{columns: number, rows: number}} size of the terminal
 * @property {number} now Unix ms
 * @property {number} heard when the last snapshot came
 * @property {{reason: string, since: number} | null} lost the controller has gone
 * @property {Picture} live
 * @property {Picture | null} frozen what is shown while it is paused
 * @property {'main' | 'detail' | 'help' | 'events' | 'faults'} view
 * @property {number} scroll lines above the screen
 * @property {string | null} selected id of a drone
 * @property {{column: string, down: boolean}} sort
 * @property {number} chart the first one that is shown where not all fit
 * @property {boolean} recent the histogram is that of the last 5 s
 * @property {Dialog | null} dialog
 * @property {{text: string, style: string, at: number, until: number} | null} notice
 * @property {Effect[]} effects to be carried out by whoever called reduce()
 *
 * @typedef {{type: 'snapshot', snapshot: FleetSnapshot, now: number}
 *   | {type: 'lost', reason: string, now: number}
 *   | {type: 'key', name: string, now: number}
 *   | {type: 'answer', what: string, error: string | null, now: number}
 *   | {type: 'size', columns: number, rows: number}
 *   | {type: 'tick', now: number}} Action
 */

/** ms for which an answer to a command is shown. */
const NOTICE = 6000

/**
 * @param {object} options
 * @param {Look} options.look
 * @param {{columns: number, rows: number}} options.size
 * @param {number} options.now
 * @param {string} [options.source]
 * @param {boolean} [options.commands]
 * @returns {State}
 */
export function initialState({ look, size, now, source = '', commands = false }) {
  return {
    look,
    source,
    commands,
    size,
    now,
    heard: now,
    lost: null,
    live: { snapshot: null, previous: null, history: [] },
    frozen: null,
    view: 'main',
    scroll: 0,
    selected: null,
    sort: { column: 'id', down: false },
    chart: 0,
    recent: false,
    dialog: null,
    notice: null,
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
    case 'snapshot':
      return onSnapshot(state, action.snapshot, action.now)
    case 'lost': {
      // Tries that fail say the same again and again: what counts is since when.
      const since = state.lost?.since ?? action.now
      return { ...state, now: action.now, lost: { reason: action.reason, since } }
    }
    case 'key':
      return onKey({ ...state, now: action.now }, action.name)
    case 'answer': {
      const { what, error, now } = action
      const said = error === null ? [`${what}: done`, 'good'] : [`${what}: ${error}`, 'bad']
      return { ...state, now, notice: { text: said[0], style: said[1], at: now, until: now + NOTICE } }
    }
    case 'size':
      return { ...state, size: { columns: action.columns, rows: action.rows } }
    case 'tick':
      return onTick(state, action.now)
  }
}

/**
 * @param {State} state
 * @param {FleetSnapshot} snapshot
 * @param {number} now
 * @returns {State}
 */
function onSnapshot(state, snapshot, now) {
  const { live } = state
  const picture = {
    snapshot,
    previous: live.snapshot,
    history: withPoint(live.history, toPoint(snapshot)),
  }
  return forgotten({ ...state, now, heard: now, lost: null, live: picture })
}

/**
 * @param {State} state
 * @param {number} now
 * @returns {State}
 */
function onTick(state, now) {
  const over = state.notice !== null && now >= state.notice.until
  const next = { ...state, now, notice: over ? null : state.notice }
  // The time of day comes with the snapshots; without them the seconds of the wait are counted.
  return over || isStale(next) ? next : state
}

/**
 * @param {State} state
 * @returns {State} a selected drone, or a question about one, that is not there any more is forgotten
 */
function forgotten(state) {
  if (state.selected === null || state.frozen !== null) return state
  if (state.live.snapshot?.drones.some(({ id }) => id === state.selected)) return state
  const view = state.view === 'detail' ? 'main' : state.view
  const dialog = state.dialog?.kind === 'restart' ? null : state.dialog
  return { ...state, selected: null, view, dialog }
}
