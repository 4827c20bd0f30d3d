import { CHARTS } from './chart-definitions.js'
import { orderedWorkers, SORTS } from './picture.js'
import { commonKeys } from './view/keys.js'
import { shown, withNotice } from './view/state.js'

/** @import { Effect, State } from './state.js' */

/** @param {State} state @param {string} name @returns {State} */
export function onKey(state, name) {
  if (state.dialog !== null) return onDialogKey(state, name)
  return Object.hasOwn(KEYS, name) ? KEYS[name](state) : state
}

/** @param {State} state @param {Effect[]} effects @returns {State} */
const withEffects = (state, ...effects) => ({ ...state, effects })

/** Maximum lines of the help or of a worker's details in one column: the limit of scrolling. */
const MAX_PAGE_LINES = 70

/** @param {State} state */
function toggleLog(state) {
  const on = !state.log.on
  return withEffects(
    { ...state, log: { on, lines: on ? [] : state.log.lines } },
    { type: 'send', command: { type: 'log', on } },
  )
}

/** @param {State} state */
function quit(state) {
  if (state.owner) return { ...state, dialog: { kind: /** @type {const} */ ('quit') } }
  return withEffects(state, { type: 'finish', reason: 'quit' })
}

/** @type {Record<string, (state: State) => State>} */
const KEYS = {
  .../** @type {Record<string, (state: State) => State>} */ (
    commonKeys({
      sorts: SORTS,
      charts: CHARTS.length,
      rows: state => orderedWorkers(state).map(({ index }) => index),
      lines: state => (state.view === 'events' ? shown(state).events.length : MAX_PAGE_LINES),
    })
  ),
  l: toggleLog,
  g: state => ({ ...state, dialog: { kind: 'gc', worker: state.selected } }),
  r: state => ({ ...state, dialog: { kind: 'restart', worker: state.selected } }),
  q: quit,
  'C-c': quit,
}

/** @param {State} state with a dialog @param {string} name @returns {State} */
function onDialogKey(state, name) {
  const { dialog } = state
  if (dialog === null) return state
  const closed = { ...state, dialog: null }
  if (dialog.kind === 'quit') {
    // Ctrl-C twice stops the gateway.
    if (name === 's' || name === 'C-c') return withEffects(closed, { type: 'finish', reason: 'stop' })
    if (name === 'l') return withEffects(closed, { type: 'finish', reason: 'leave' })
    return ['escape', 'n', 'q', 'enter'].includes(name) ? closed : state
  }
  if (name === 'C-c') return quit(closed)
  if (['escape', 'n', 'q'].includes(name)) return closed
  if (dialog.kind === 'restart' && (name === 'a' || (name === 'y' && dialog.worker !== null))) {
    const worker = name === 'a' ? null : dialog.worker
    const whom =
      worker === null
        ? 'all workers are asked to restart, one by one'
        : `worker ${worker} is asked to restart`
    return withEffects(withNotice(closed, whom), {
      type: 'send',
      command: { type: 'restart', worker },
    })
  }
  if (dialog.kind === 'gc' && (name === 'a' || (name === 'w' && dialog.worker !== null))) {
    const worker = name === 'a' ? null : dialog.worker
    const whom = worker === null ? 'all workers are' : `worker ${worker} is`
    return withEffects(withNotice(closed, `${whom} asked for a garbage collection`), {
      type: 'send',
      command: { type: 'gc', worker },
    })
  }
  return state
}
