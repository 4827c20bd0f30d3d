import { initialView, onTick, withPoint, withReply } from '../../dashboard/view/state.js'
import { onKey } from './keys.js'
import { isStale, KEPT, toPoint } from './picture.js'

/**
 * @typedef {import('../schema.js').FleetSnapshot} FleetSnapshot
 * @typedef {import('./picture.js').Moment} Moment
 *
 * @typedef {{unicode: boolean, colors: boolean}} Look what the terminal can show
 *
 * @typedef {object} Picture
 * @property {FleetSnapshot | null} snapshot
 * @property {FleetSnapshot | null} previous the one before, for rates of the machine
 * @property {Moment[]} history one a second
 *
 * @typedef {{type: 'command', name: string, params: Record<string, any>, what: string} | {type: 'finish'}} Effect
 * @typedef {{kind: 'restart', id: string} | {kind: 'wanted', text: string}} Dialog
 *
 * @typedef {object} OwnState of this view only
 * @property {string} source name of the source; '' if it has none
 * @property {boolean} commands whether the source takes commands
 * @property {{reason: string, since: number} | null} lost the controller is gone
 * @property {'main' | 'detail' | 'help' | 'events' | 'faults'} view
 * @property {string | null} selected id of a drone
 * @property {boolean} recent the histogram shows the last 5 s
 * @property {Dialog | null} dialog
 * @property {Effect[]} effects for the caller of reduce() to carry out
 *
 * @typedef {import('../../dashboard/view/state.js').ViewState<Picture> & OwnState} State everything that the screen
 *   shows; never changed, always replaced
 * @typedef {import('../../dashboard/view/screen.js').Panel<State>} Panel
 *
 * @typedef {{type: 'snapshot', snapshot: FleetSnapshot, now: number}
 *   | {type: 'lost', reason: string, now: number}
 *   | {type: 'answer', what: string, error: string | null, now: number}
 *   | import('../../dashboard/view/state.js').ViewAction} Action
 */

/**
 * @param {object} options @param {Look} options.look @param {{columns: number, rows: number}} options.size
 * @param {number} options.now @param {string} [options.source] @param {boolean} [options.commands]
 * @returns {State}
 */
export function initialState({ look, size, now, source = '', commands = false }) {
  const live = { snapshot: null, previous: null, history: [] }
  return {
    ...initialView({ look, size, now, sort: 'id', live: /** @type {Picture} */ (live) }),
    source,
    commands,
    lost: null,
    view: 'main',
    selected: null,
    recent: false,
    dialog: null,
    effects: [],
  }
}

/**
 * @param {State} before @param {Action} action
 * @returns {State} the same one when nothing visible has changed and there is no effect
 */
export function reduce(before, action) {
  const state = before.effects.length > 0 ? { ...before, effects: [] } : before
  switch (action.type) {
    case 'snapshot':
      return onSnapshot(state, action.snapshot, action.now)
    case 'lost': {
      // Failed attempts repeat the event: keep the time of the first one.
      const since = state.lost?.since ?? action.now
      return { ...state, now: action.now, lost: { reason: action.reason, since } }
    }
    case 'key':
      return onKey({ ...state, now: action.now }, action.name)
    case 'answer':
      return withReply({ ...state, now: action.now }, action.what, action.error)
    case 'size':
      return { ...state, size: { columns: action.columns, rows: action.rows } }
    case 'tick':
      return onTick(state, action.now, isStale)
  }
}

/** @param {State} state @param {FleetSnapshot} snapshot @param {number} now @returns {State} */
function onSnapshot(state, snapshot, now) {
  const { live } = state
  const picture = {
    snapshot,
    previous: live.snapshot,
    history: withPoint(live.history, toPoint(snapshot), KEPT),
  }
  return withoutGone({ ...state, now, receivedAt: now, lost: null, live: picture })
}

/** @param {State} state @returns {State} without a selection of, or question about, a drone that is gone */
function withoutGone(state) {
  if (state.selected === null || state.frozen !== null) return state
  if (state.live.snapshot?.drones.some(({ id }) => id === state.selected)) return state
  const view = state.view === 'detail' ? 'main' : state.view
  const dialog = state.dialog?.kind === 'restart' ? null : state.dialog
  return { ...state, selected: null, view, dialog }
}
