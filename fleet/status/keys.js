import { whole } from '../../dashboard/format.js'
import { SETTINGS, SettingError } from '../settings.js'
import { CHARTS } from './charts.js'
import { orderedDrones, SORTS } from './order.js'
import { shown } from './picture.js'

/**
 * @typedef {import('./state.js').State} State
 * @typedef {import('./state.js').Effect} Effect
 */

/** ms for which the keys' own notices are shown. */
const NOTICE = 6000
/** Rows that are there besides what is scrolled. */
const FIXED = 4
/** What is scrolled and whose length is not known here ends somewhere. */
const LONGEST = 120
/** Characters of a number that somebody types. */
const TYPED = 12

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

/**
 * @param {State} state
 * @param {number} by rows
 * @returns {State}
 */
function scrolledBy(state, by) {
  const { snapshot } = shown(state)
  const lines =
    state.view === 'events'
      ? (snapshot?.events.length ?? 0)
      : state.view === 'faults'
        ? Object.keys(snapshot?.faults ?? {}).length
        : LONGEST
  const most = Math.max(0, lines - (state.size.rows - FIXED))
  return { ...state, scroll: Math.min(most, Math.max(0, state.scroll + by)) }
}

/**
 * @param {State} state
 * @param {number} by rows
 * @returns {State}
 */
function moved(state, by) {
  if (state.view !== 'main' && state.view !== 'detail') return scrolledBy(state, by)
  const drones = orderedDrones(state)
  if (drones.length === 0) return state
  const at = drones.findIndex(({ id }) => id === state.selected)
  // Where none is selected, down begins at the first one, and up at the last one.
  const from = at < 0 && by < 0 ? drones.length : at
  const to = Math.min(drones.length - 1, Math.max(0, from + by))
  return { ...state, selected: drones[to].id }
}

/**
 * @param {State} state
 * @param {number} by rows
 * @returns {State}
 */
const paged = (state, by) => (state.view === 'detail' ? scrolledBy(state, by) : moved(state, by))

/** @param {State} state */
function sorted(state) {
  const at = SORTS.findIndex(({ name }) => name === state.sort.column)
  const { name, down } = SORTS[(at + 1) % SORTS.length]
  return { ...state, sort: { column: name, down } }
}

/** @param {State} state @returns {State} */
function detail(state) {
  if (state.view !== 'main') return { ...state, view: 'main', scroll: 0 }
  const selected = state.selected ?? orderedDrones(state)[0]?.id ?? null
  return selected === null ? state : { ...state, selected, view: 'detail', scroll: 0 }
}

/**
 * @param {State} state
 * @param {(state: State) => State} run
 * @returns {State}
 */
function commanding(state, run) {
  if (!state.commands) return saying(state, 'this view only shows: the fleet is told with halley fleet set')
  if (state.lost !== null) return saying(state, 'there is no controller that could be told', 'warn')
  return run(state)
}

/** @param {State} state @returns {State} */
function restart(state) {
  if (state.selected === null) return saying(state, 'select a drone first: up, down')
  return { ...state, dialog: { kind: 'restart', id: state.selected } }
}

/**
 * @param {State} state
 * @param {number} n
 * @returns {State}
 */
function wanting(state, n) {
  const before = shown(state).snapshot?.settings.n ?? 0
  if (n === before) return state
  const what = `n ${whole(before)} → ${whole(n)}`
  return {
    ...saying(state, what),
    effects: [{ type: 'command', name: 'set', params: { n }, what }],
  }
}

/**
 * @param {State} state
 * @param {1 | -1} direction
 * @returns {State} a step is a tenth, rounded to a power of ten
 */
function stepped(state, direction) {
  const n = state.live.snapshot?.settings.n ?? 0
  const step = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, n)) + 1e-9) - 1)
  return wanting(state, Math.max(0, Math.round((n + direction * step) / step) * step))
}

/** @param {State} state @returns {State} */
const closed = state => ({ ...state, view: 'main', scroll: 0 })

/** @param {State} state @returns {State} */
const quit = state => ({ ...state, effects: [{ type: 'finish' }] })

/** @param {State} state @returns {State} */
const nextChart = state => ({ ...state, chart: (state.chart + 1) % CHARTS.length })

/** @type {Record<string, (state: State) => State>} */
const KEYS = {
  h: state => toggled(state, 'help'),
  '?': state => toggled(state, 'help'),
  e: state => toggled(state, 'events'),
  f: state => toggled(state, 'faults'),
  s: sorted,
  S: state => ({ ...state, sort: { ...state.sort, down: !state.sort.down } }),
  up: state => moved(state, -1),
  k: state => moved(state, -1),
  down: state => moved(state, 1),
  j: state => moved(state, 1),
  pageup: state => paged(state, -10),
  pagedown: state => paged(state, 10),
  home: state => moved(state, -1e9),
  end: state => moved(state, 1e9),
  enter: detail,
  escape: state => (state.view === 'main' ? { ...state, selected: null, notice: null } : closed(state)),
  p: state => ({ ...state, frozen: state.frozen === null ? state.live : null }),
  c: nextChart,
  tab: nextChart,
  t: state => ({ ...state, recent: !state.recent }),
  r: state => commanding(state, restart),
  n: state => commanding(state, state => ({ ...state, dialog: { kind: 'wanted', text: '' } })),
  '+': state => commanding(state, state => stepped(state, 1)),
  '-': state => commanding(state, state => stepped(state, -1)),
  q: quit,
  'C-c': quit,
}

/** @type {import('../settings.js').Setting} */
const N = /** @type {any} */ (SETTINGS.find(({ name }) => name === 'n'))

/**
 * @param {State} state with a dialog
 * @param {string} name
 * @returns {State}
 */
function inDialog(state, name) {
  const { dialog } = state
  if (dialog === null) return state
  const done = { ...state, dialog: null }
  if (name === 'C-c') return quit(done)
  if (name === 'escape') return done
  if (dialog.kind === 'restart') {
    if (name === 'n' || name === 'q') return done
    if (name !== 'y') return state
    const what = `restart of ${dialog.id}`
    const params = { ids: [dialog.id] }
    return {
      ...saying(done, `${dialog.id} is asked to restart`),
      effects: [{ type: 'command', name: 'restart', params, what }],
    }
  }
  if (name === 'q') return done
  if (name === 'backspace') return { ...state, dialog: { ...dialog, text: dialog.text.slice(0, -1) } }
  if (name === 'enter') {
    if (dialog.text === '') return done
    try {
      return wanting(done, N.parse(dialog.text))
    } catch (error) {
      if (error instanceof SettingError) return saying(done, error.message, 'bad')
      throw error
    }
  }
  if (!/^[\d_,.kmKM]$/.test(name) || dialog.text.length >= TYPED) return state
  return { ...state, dialog: { ...dialog, text: dialog.text + name } }
}
