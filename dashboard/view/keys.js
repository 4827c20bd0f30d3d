/**
 * @template Id, State
 * @typedef {object} Views
 * @property {readonly {name: string, down: boolean}[]} sorts columns, in the order of the key `s`
 * @property {number} charts
 * @property {(state: State) => Id[]} rows ids of the table, sorted
 * @property {(state: State) => number} lines length of the page that scrolls
 */

/**
 * @template Id
 * @typedef {Pick<import('./state.js').ViewState<any>, 'live' | 'frozen' | 'scroll' | 'sort' | 'chart' | 'notice' |
 *   'size'> & {view: string, selected: Id | null}} Keyed
 */

/** Rows of the screen that do not scroll. */
const FIXED = 4
const PAGE = 10

/**
 * @template {Keyed<any>} State
 * @param {State} state @param {State['view']} view @returns {State} with the view opened, or closed if it was open
 */
export const toggled = (state, view) => ({ ...state, view: state.view === view ? 'main' : view, scroll: 0 })

/**
 * The keys of both views; each adds its own.
 * @template Id
 * @template {Keyed<Id>} State
 * @param {Views<Id, State>} views @returns {Record<string, (state: State) => State>} by blessed's names
 */
export function commonKeys({ sorts, charts, rows, lines }) {
  const scrolled = (/** @type {State} */ state, /** @type {number} */ by) => {
    const most = Math.max(0, lines(state) - (state.size.rows - FIXED))
    return { ...state, scroll: Math.min(most, Math.max(0, state.scroll + by)) }
  }

  const moved = (/** @type {State} */ state, /** @type {number} */ by) => {
    if (state.view !== 'main' && state.view !== 'detail') return scrolled(state, by)
    const ids = rows(state)
    if (ids.length === 0) return state
    const at = state.selected === null ? -1 : ids.indexOf(state.selected)
    // Without a selection, down starts at the first row, up at the last.
    const from = at < 0 && by < 0 ? ids.length : at
    return { ...state, selected: ids[Math.min(ids.length - 1, Math.max(0, from + by))] }
  }

  const paged = (/** @type {State} */ state, /** @type {number} */ by) =>
    state.view === 'detail' ? scrolled(state, by) : moved(state, by)

  const sorted = (/** @type {State} */ state) => {
    const at = sorts.findIndex(({ name }) => name === state.sort.column)
    const { name, down } = sorts[(at + 1) % sorts.length]
    return { ...state, sort: { column: name, down } }
  }

  const closed = (/** @type {State} */ state) => ({ ...state, view: 'main', scroll: 0 })

  const detail = (/** @type {State} */ state) => {
    if (state.view !== 'main') return closed(state)
    const selected = state.selected ?? rows(state)[0] ?? null
    return selected === null ? state : { ...state, selected, view: 'detail', scroll: 0 }
  }

  const nextChart = (/** @type {State} */ state) => ({ ...state, chart: (state.chart + 1) % charts })

  return {
    h: state => toggled(state, 'help'),
    '?': state => toggled(state, 'help'),
    e: state => toggled(state, 'events'),
    s: sorted,
    S: state => ({ ...state, sort: { ...state.sort, down: !state.sort.down } }),
    up: state => moved(state, -1),
    k: state => moved(state, -1),
    down: state => moved(state, 1),
    j: state => moved(state, 1),
    pageup: state => paged(state, -PAGE),
    pagedown: state => paged(state, PAGE),
    home: state => moved(state, -1e9),
    end: state => moved(state, 1e9),
    enter: detail,
    escape: state => (state.view === 'main' ? { ...state, selected: null, notice: null } : closed(state)),
    p: state => ({ ...state, frozen: state.frozen === null ? state.live : null }),
    c: nextChart,
    tab: nextChart,
  }
}
