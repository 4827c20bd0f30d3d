import { commonKeys, toggleView } from '../../dashboard/view/keys.js'
import { shown, withNotice } from '../../dashboard/view/state.js'
import { whole } from '../../src/base/format.js'
import { COMMAND } from '../../src/base/version.js'
import { SETTINGS, SettingError } from '../settings.js'
import { CHARTS } from './panels/charts.js'
import { orderedDrones, SORTS } from './picture.js'

/**
 * @typedef {import('./state.js').State} State
 * @typedef {import('./state.js').Effect} Effect
 */

/** Most lines of a page whose length is unknown here. */
const LONGEST = 120
/** Most characters of a typed number. */
const TYPED = 12

/** @param {State} state @param {string} name of the key @returns {State} */
export function onKey(state, name) {
  if (state.dialog !== null) return inDialog(state, name)
  return Object.hasOwn(KEYS, name) ? KEYS[name](state) : state
}

/** @param {State} state @param {(state: State) => State} run @returns {State} */
function ifWritable(state, run) {
  if (!state.commands) return withNotice(state, `this view is read-only: use ${COMMAND} fleet set`)
  if (state.lost !== null) return withNotice(state, 'no controller at the moment', 'warn')
  return run(state)
}

/** @param {State} state @returns {State} */
function restart(state) {
  if (state.selected === null) return withNotice(state, 'select a drone first: up, down')
  return { ...state, dialog: { kind: 'restart', id: state.selected } }
}

/** @param {State} state @param {number} n @returns {State} */
function withConnections(state, n) {
  const before = shown(state).snapshot?.settings.n ?? 0
  if (n === before) return state
  const what = `n ${whole(before)} → ${whole(n)}`
  return { ...withNotice(state, what), effects: [{ type: 'command', name: 'set', params: { n }, what }] }
}

/** @param {State} state @param {1 | -1} direction @returns {State} a step is a tenth, rounded to a power of ten */
function stepped(state, direction) {
  const n = state.live.snapshot?.settings.n ?? 0
  const step = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, n)) + 1e-9) - 1)
  return withConnections(state, Math.max(0, Math.round((n + direction * step) / step) * step))
}

/** @param {State} state @returns {State} */
const quit = state => ({ ...state, effects: [{ type: 'finish' }] })

/** @param {State} state @returns {number} lines of the page that scrolls now */
function lines(state) {
  const { snapshot } = shown(state)
  if (state.view === 'events') return snapshot?.events.length ?? 0
  if (state.view === 'faults') return Object.keys(snapshot?.faults ?? {}).length
  return LONGEST
}

/** @type {Record<string, (state: State) => State>} */
const KEYS = {
  .../** @type {Record<string, (state: State) => State>} */ (
    commonKeys({
      sorts: SORTS,
      charts: CHARTS.length,
      rows: state => orderedDrones(state).map(({ id }) => id),
      lines,
    })
  ),
  f: state => toggleView(state, 'faults'),
  t: state => ({ ...state, recent: !state.recent }),
  r: state => ifWritable(state, restart),
  n: state => ifWritable(state, state => ({ ...state, dialog: { kind: 'wanted', text: '' } })),
  '+': state => ifWritable(state, state => stepped(state, 1)),
  '-': state => ifWritable(state, state => stepped(state, -1)),
  q: quit,
  'C-c': quit,
}

/** @type {import('../settings.js').Setting} */
const N = /** @type {any} */ (SETTINGS.find(({ name }) => name === 'n'))

/** @param {State} state with a dialog @param {string} name @returns {State} */
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
      ...withNotice(done, `${dialog.id} is asked to restart`),
      effects: [{ type: 'command', name: 'restart', params, what }],
    }
  }
  if (name === 'q') return done
  if (name === 'backspace') return { ...state, dialog: { ...dialog, text: dialog.text.slice(0, -1) } }
  if (name === 'enter') {
    if (dialog.text === '') return done
    try {
      return withConnections(done, N.parse(dialog.text))
    } catch (error) {
      if (error instanceof SettingError) return withNotice(done, error.message, 'bad')
      throw error
    }
  }
  if (!/^[\d_,.kmKM]$/.test(name) || dialog.text.length >= TYPED) return state
  return { ...state, dialog: { ...dialog, text: dialog.text + name } }
}
