import { CHARTS } from './charts.js'
import { orderedWorkers, SORTS } from './order.js'
import { shown } from './picture.js'

/**
 * @typedef {import('./state.js').State} State
 * @typedef {import('./state.js').Effect} Effect
 */

/** ms for which the keys' own notices are shown. */
const NOTICE = 6000

/**
 * @param {State} state
 * @param {string} name of the key
 * @returns {State}
 */
export function onKey(state, name) {
  if (state.dialog !== null) return inDialog(state, name)
  return Object.hasOwn(KEYS, name) ? KEYS[name](state) : state
}

/**
 * @param {State} state
 * @param {Effect[]} effects
 * @returns {State}
 */
const doing = (state, ...effects) => ({ ...state, effects })

/**
 * @param {State} state
 * @param {string} text
 * @param {string} [style]
 * @returns {State}
 */
const saying = (state, text, style = 'label') => ({
  ...state,
  notice: { text, style, at: state.now, until: state.now + NOTICE },
})

/**
 * @param {State} state
 * @param {State['view']} view
 * @returns {State} with it open, or closed when it was
 */
const toggled = (state, view) => ({ ...state, view: state.view === view ? 'main' : view, scroll: 0 })

/** Lines of the help, and of what is known of a worker, where one column has to do. */
const LONGEST = 70
/** Rows that are there besides what is scrolled. */
const FIXED = 4

/**
 * @param {State} state
 * @param {number} by rows
 * @returns {State}
 */
function scrolledBy(state, by) {
  const lines = state.view === 'events' ? shown(state).events.length : LONGEST
  const most = Math.max(0, lines - (state.size.rows - FIXED))
  return { ...state, scroll: Math.min(most, Math.max(0, state.scroll + by)) }
}

/**
 * @param {State} state
 * @param {number} by rows
 * @returns {State}
 */
function moved(state, by) {
  if (state.view === 'help' || state.view === 'events') return scrolledBy(state, by)
  const workers = orderedWorkers(state)
  if (workers.length === 0) return state
  const at = workers.findIndex(({ index }) => index === state.selected)
  const to = at < 0 ? (by > 0 ? 0 : workers.length - 1) : Math.min(workers.length - 1, Math.max(0, at + by))
  return { ...state, selected: workers[to].index }
}

/**
 * @param {State} state
 * @param {number} by rows
 * @returns {State}
 */
function paged(state, by) {
  return state.view === 'detail' ? scrolledBy(state, by) : moved(state, by)
}

/** @param {State} state */
function sorted(state) {
  const at = SORTS.findIndex(({ name }) => name === state.sort.column)
  const { name, down } = SORTS[(at + 1) % SORTS.length]
  return { ...state, sort: { column: name, down } }
}

/** @param {State} state */
function detail(state) {
  if (state.view !== 'main') return { ...state, view: /** @type {const} */ ('main'), scroll: 0 }
  const selected = state.selected ?? orderedWorkers(state)[0]?.index ?? null
  return selected === null ? state : { ...state, selected, view: /** @type {const} */ ('detail'), scroll: 0 }
}

/** @param {State} state */
function paused(state) {
  return { ...state, frozen: state.frozen === null ? state.live : null }
}

/** @param {State} state */
function logged(state) {
  const on = !state.log.on
  return doing(
    { ...state, log: { on, lines: on ? [] : state.log.lines } },
    { type: 'send', command: { type: 'log', on } },
  )
}

/** @param {State} state */
function restart(state) {
  if (state.selected === null) return saying(state, 'select a worker first: up, down')
  return { ...state, dialog: { kind: /** @type {const} */ ('restart'), worker: state.selected } }
}

/** @param {State} state */
function quit(state) {
  if (state.owner) return { ...state, dialog: { kind: /** @type {const} */ ('quit') } }
  return doing(state, { type: 'finish', reason: 'quit' })
}

/** @param {State} state */
const closed = state => ({ ...state, view: /** @type {const} */ ('main'), scroll: 0 })

/** @type {Record<string, (state: State) => State>} */
const KEYS = {
  h: state => toggled(state, 'help'),
  '?': state => toggled(state, 'help'),
  e: state => toggled(state, 'events'),
  s: sorted,
  S: state => ({ ...state, sort: { ...state.sort, down: !state.sort.down } }),
  up: state => moved(state, -1),
  k: state => moved(state, -1),
  down: state => moved(state, 1),
  j: state => moved(state, 1),
  pageup: state => paged(state, -10),
  pagedown: state => paged(state, 10),
  home: state => moved(state, -1e6),
  end: state => moved(state, 1e6),
  enter: detail,
  escape: state => (state.view === 'main' ? { ...state, selected: null, notice: null } : closed(state)),
  p: paused,
  l: logged,
  g: state => ({ ...state, dialog: { kind: 'gc', worker: state.selected } }),
  r: restart,
  c: state => ({ ...state, chart: (state.chart + 1) % CHARTS.length }),
  tab: state => ({ ...state, chart: (state.chart + 1) % CHARTS.length }),
  q: quit,
  'C-c': quit,
}

/**
 * @param {State} state with a dialog
 * @param {string} name
 * @returns {State}
 */
function inDialog(state, name) {
  const { dialog } = state
  const done = { ...state, dialog: null }
  if (dialog === null) return state
  if (dialog.kind === 'quit') {
    // Somebody who presses ctrl-c twice wants to be gone.
    if (name === 's' || name === 'C-c') return doing(done, { type: 'finish', reason: 'stop' })
    if (name === 'l') return doing(done, { type: 'finish', reason: 'leave' })
    return ['escape', 'n', 'q', 'enter'].includes(name) ? done : state
  }
  if (name === 'C-c') return quit(done)
  if (['escape', 'n', 'q'].includes(name)) return done
  if (dialog.kind === 'restart' && name === 'y') {
    const { worker } = dialog
    return doing(saying(done, `worker ${worker} is asked to restart`), {
      type: 'send',
      command: { type: 'restart', worker },
    })
  }
  if (dialog.kind === 'gc' && (name === 'a' || (name === 'w' && dialog.worker !== null))) {
    const worker = name === 'a' ? null : dialog.worker
    const whom = worker === null ? 'all workers are' : `worker ${worker} is`
    return doing(saying(done, `${whom} asked for a garbage collection`), {
      type: 'send',
      command: { type: 'gc', worker },
    })
  }
  return state
}
