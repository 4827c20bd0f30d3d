/**
 * What the keys move through.
 * @template Id, State
 * @typedef {object} KeyOptions
 * @property {readonly {name: string, down: boolean}[]} sorts sort columns in the order of the key `s`, and their first
 *   direction
 * @property {number} charts number of charts
 * @property {(state: State) => Id[]} rows ids of the table's rows, sorted
 * @property {(state: State) => number} lines length of the open page
 */

/**
 * The part of a state that the keys change.
 * @template Id
 * @typedef {Pick<import('./state.js').ViewState<any>, 'live' | 'frozen' | 'scroll' | 'sort' | 'chart' | 'notice' |
 *   'size'> & {view: string, selected: Id | null}} KeyState
 */

/** Rows of the screen beside the page that scrolls. */
const FIXED_ROWS = 4
/** Rows that page up and page down move by. */
const PAGE_ROWS = 10

/**
 * @template {KeyState<any>} State
 * @param {State} state @param {State['view']} view @returns {State} with the view opened, or closed if it was open
 */
export const toggleView = (state, view) => ({
  ...state,
  view: state.view === view ? 'main' : view,
  scroll: 0,
})

/**
 * The keys common to the dashboard and `halley fleet status`, which add their own.
 * @template Id
 * @template {KeyState<Id>} State
 * @param {KeyOptions<Id, State>} options
 * @returns {Record<string, (state: State) => State>} blessed's name of a key -> change of the state
 */
export function commonKeys({ sorts, charts, rows, lines }) {
  const scrollBy = (/** @type {State} */ state, /** @type {number} */ by) => {
    const maxScroll = Math.max(0, lines(state) - (state.size.rows - FIXED_ROWS))
    return { ...state, scroll: Math.min(maxScroll, Math.max(0, state.scroll + by)) }
  }

  const moveBy = (/** @type {State} */ state, /** @type {number} */ by) => {
    if (state.view !== 'main' && state.view !== 'detail') return scrollBy(state, by)
    const ids = rows(state)
    if (ids.length === 0) return state
    const at = state.selected === null ? -1 : ids.indexOf(state.selected)
    // Without a selection, down starts at the first row, up at the last.
    const from = at < 0 && by < 0 ? ids.length : at
    return { ...state, selected: ids[Math.min(ids.length - 1, Math.max(0, from + by))] }
  }

  const pageBy = (/** @type {State} */ state, /** @type {number} */ by) =>
    state.view === 'detail' ? scrollBy(state, by) : moveBy(state, by)

  const sortByNext = (/** @type {State} */ state) => {
    const at = sorts.findIndex(({ name }) => name === state.sort.column)
    const { name, down } = sorts[(at + 1) % sorts.length]
    return { ...state, sort: { column: name, down } }
  }

  const closePage = (/** @type {State} */ state) => ({ ...state, view: 'main', scroll: 0 })

  const toggleDetail = (/** @type {State} */ state) => {
    if (state.view !== 'main') return closePage(state)
    const selected = state.selected ?? rows(state)[0] ?? null
    return selected === null ? state : { ...state, selected, view: 'detail', scroll: 0 }
  }

  const showNextChart = (/** @type {State} */ state) => ({ ...state, chart: (state.chart + 1) % charts })

  return {
    h: state => toggleView(state, 'help'),
    '?': state => toggleView(state, 'help'),
    e: state => toggleView(state, 'events'),
    s: sortByNext,
    S: state => ({ ...state, sort: { ...state.sort, down: !state.sort.down } }),
    up: state => moveBy(state, -1),
    k: state => moveBy(state, -1),
    down: state => moveBy(state, 1),
    j: state => moveBy(state, 1),
    pageup: state => pageBy(state, -PAGE_ROWS),
    pagedown: state => pageBy(state, PAGE_ROWS),
    home: state => moveBy(state, -1e9),
    end: state => moveBy(state, 1e9),
    enter: toggleDetail,
    escape: state => (state.view === 'main' ? { ...state, selected: null, notice: null } : closePage(state)),
    p: state => ({ ...state, frozen: state.frozen === null ? state.live : null }),
    c: showNextChart,
    tab: showNextChart,
  }
}
