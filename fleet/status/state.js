import {
  commonKeys,
  initialView,
  onTick,
  STALE_AFTER,
  shown,
  toggleView,
  withNotice,
  withPoint,
  withReply,
} from '../../dashboard/view/state.js'
import { whole } from '../../src/base/format.js'
import { COMMAND } from '../../src/base/version.js'
import { SETTINGS, SettingError } from '../settings.js'
import { Distribution } from '../statistics/distribution.js'
import { CHARTS, KEPT } from './charts.js'
import { orderedDrones, SORTS } from './drones.js'

/** @import { ViewAction, ViewState } from '../../dashboard/view/state.js' */
/** @import { FleetSnapshot } from '../schema.js' */
/** @import { Setting } from '../settings.js' */
/** @import { Moment } from './charts.js' */
/** @import { SourceEvent } from './index.js' */

/**
 * @typedef {{snapshot: FleetSnapshot | null, previous: FleetSnapshot | null, history: Moment[]}} Picture `previous`: for
 *   rates of the machine
 * @typedef {{type: 'command', name: string, params: Record<string, any>, what: string} | {type: 'finish'}} Effect
 * @typedef {{kind: 'restart', id: string} | {kind: 'wanted', text: string}} Dialog
 *
 * @typedef {object} OwnState of this view only
 * @property {string} source its name, or ''
 * @property {boolean} commands whether the source takes commands
 * @property {{reason: string, since: number} | null} lost no controller
 * @property {'main' | 'detail' | 'help' | 'events' | 'faults'} view
 * @property {string | null} selected id of a drone
 * @property {boolean} recent the histogram shows the last 5 s
 * @property {Dialog | null} dialog
 * @property {Effect[]} effects executed by the caller of reduce()
 *
 * @typedef {ViewState<Picture> & OwnState} State all data on the screen; immutable
 * @typedef {import('../../dashboard/view/screen.js').Panel<State>} Panel
 * @typedef {(SourceEvent & {now: number}) | {type: 'answer', what: string, error: string | null, now: number} |
 *   ViewAction} Action
 */

/**
 * @param {Pick<State, 'look' | 'size' | 'now'> & Partial<Pick<State, 'source' | 'commands'>>} options
 * @returns {State}
 */
export function initialState({ look, size, now, source = '', commands = false }) {
  /** @type {Picture} */
  const live = { snapshot: null, previous: null, history: [] }
  return {
    ...initialView({ look, size, now, sort: 'id', live }),
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

/** @param {State} state */
export const isStale = state => state.lost !== null || state.now - state.receivedAt > STALE_AFTER

/** The same object if nothing visible has changed. @param {State} before @param {Action} action @returns {State} */
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

/** @param {FleetSnapshot} snapshot latency in ms; null: nothing was received in the last 5 s */
export function toPoint({
  time,
  gauges: { open, wanted },
  rates: { opened, received, published },
  latencyNow,
}) {
  const latency = latencyNow.count > 0 ? Distribution.from(latencyNow) : null
  const [p50 = null, p99 = null] = [50, 99].map(p => latency?.percentile(p))
  return { time, open, wanted, opened, received, published, p50, p99, max: latency?.max ?? null }
}

/** @param {State} state @param {FleetSnapshot} snapshot @param {number} now @returns {State} */
function onSnapshot(state, snapshot, now) {
  const { live } = state
  const history = withPoint(live.history, toPoint(snapshot), KEPT)
  const picture = { snapshot, previous: live.snapshot, history }
  return withoutGone({ ...state, now, receivedAt: now, lost: null, live: picture })
}

/** @param {State} state @returns {State} without a selection or dialog of a removed drone */
function withoutGone(state) {
  if (state.selected === null || state.frozen !== null) return state
  if (state.live.snapshot?.drones.some(({ id }) => id === state.selected)) return state
  const view = state.view === 'detail' ? 'main' : state.view
  const dialog = state.dialog?.kind === 'restart' ? null : state.dialog
  return { ...state, selected: null, view, dialog }
}

/** Maximum lines of a page of unknown length. */
const LONGEST = 120
const TYPED = 12
const N = /** @type {Setting} */ (SETTINGS.find(({ name }) => name === 'n'))

/** @param {State} state @param {string} name of the key @returns {State} */
function onKey(state, name) {
  if (state.dialog !== null) return onDialogKey(state, state.dialog, name)
  return Object.hasOwn(KEYS, name) ? KEYS[name](state) : state
}

/** @param {(state: State) => State} run @returns {(state: State) => State} */
const ifWritable = run => state => {
  if (!state.commands) return withNotice(state, `this view is read-only: use ${COMMAND} fleet set`)
  return state.lost === null ? run(state) : withNotice(state, 'no controller', 'warn')
}

/** @param {State} state @returns {State} */
function restart(state) {
  if (state.selected === null) return withNotice(state, 'select a drone first (up, down)')
  return { ...state, dialog: { kind: 'restart', id: state.selected } }
}

/** @param {State} state @param {number} n @returns {State} */
function withConnections(state, n) {
  const before = shown(state).snapshot?.settings.n ?? 0
  if (n === before) return state
  const what = `n ${whole(before)} → ${whole(n)}`
  return { ...withNotice(state, what), effects: [{ type: 'command', name: 'set', params: { n }, what }] }
}

/** Steps are a tenth, rounded to a power of ten. @param {1 | -1} direction */
const step = direction =>
  ifWritable(state => {
    const n = state.live.snapshot?.settings.n ?? 0
    const step = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, n)) + 1e-9) - 1)
    return withConnections(state, Math.max(0, Math.round((n + direction * step) / step) * step))
  })

/** @param {State} state @returns {State} */
const quit = state => ({ ...state, effects: [{ type: 'finish' }] })

/** @type {Record<string, (state: State) => State>} */
const KEYS = {
  .../** @type {Record<string, (state: State) => State>} */ (
    commonKeys({
      sorts: SORTS,
      charts: CHARTS.length,
      rows: state => orderedDrones(state).map(({ id }) => id),
      lines: state => {
        const { events = [], faults = {} } = shown(state).snapshot ?? {}
        if (state.view === 'events') return events.length
        return state.view === 'faults' ? Object.keys(faults).length : LONGEST
      },
    })
  ),
  f: state => toggleView(state, 'faults'),
  t: state => ({ ...state, recent: !state.recent }),
  r: ifWritable(restart),
  n: ifWritable(state => ({ ...state, dialog: { kind: 'wanted', text: '' } })),
  '+': step(1),
  '-': step(-1),
  q: quit,
  'C-c': quit,
}

/** @param {State} state @param {Dialog} dialog its question @param {string} name of the key @returns {State} */
function onDialogKey(state, dialog, name) {
  const closed = { ...state, dialog: null }
  if (name === 'C-c') return quit(closed)
  if (name === 'escape' || name === 'q') return closed
  if (dialog.kind === 'restart') {
    if (name === 'n') return closed
    if (name !== 'y') return state
    const { id } = dialog
    return {
      ...withNotice(closed, `restarting ${id}`),
      effects: [{ type: 'command', name: 'restart', params: { ids: [id] }, what: `restart of ${id}` }],
    }
  }
  const { text } = dialog
  if (name === 'backspace') return { ...state, dialog: { ...dialog, text: text.slice(0, -1) } }
  if (name === 'enter') {
    if (text === '') return closed
    try {
      return withConnections(closed, N.parse(text))
    } catch (error) {
      if (error instanceof SettingError) return withNotice(closed, error.message, 'bad')
      throw error
    }
  }
  if (!/^[\d_,.kmKM]$/.test(name) || text.length >= TYPED) return state
  return { ...state, dialog: { ...dialog, text: text + name } }
}
