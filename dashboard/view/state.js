/**
 * @template Picture
 * @typedef {object} ViewState
 * @property {{unicode: boolean, colors: boolean}} look
 * @property {{columns: number, rows: number}} size
 * @property {number} now Unix ms
 * @property {number} receivedAt time of the last snapshot, Unix ms
 * @property {Picture} live figures from the source
 * @property {Picture | null} frozen figures shown while the view is paused
 * @property {number} scroll lines
 * @property {{column: string, down: boolean}} sort
 * @property {number} chart index of the first chart shown if not all fit
 * @property {{text: string, style: string, at: number, until: number} | null} notice
 */

/**
 * @typedef {{type: 'key', name: string, now: number}
 *   | {type: 'size', columns: number, rows: number}
 *   | {type: 'tick', now: number}} ViewAction
 */

/** Display time of a notice, ms. */
const NOTICE_TIME = 6000
/** Time without a snapshot after which the figures are marked as stale, ms. */
export const STALE_AFTER = 3000

/**
 * @template Picture
 * @param {object} options @param {{unicode: boolean, colors: boolean}} options.look
 * @param {{columns: number, rows: number}} options.size @param {number} options.now Unix ms
 * @param {string} options.sort first sort column @param {Picture} options.live @returns {ViewState<Picture>}
 */
export const initialView = ({ look, size, now, sort, live }) => ({
  look,
  size,
  now,
  receivedAt: now,
  live,
  frozen: null,
  scroll: 0,
  sort: { column: sort, down: false },
  chart: 0,
  notice: null,
})

/** @template Picture @param {{live: Picture, frozen: Picture | null}} state @returns {Picture} */
export const shown = state => state.frozen ?? state.live

/** @template {{now: number}} S @param {S} state @param {string} text @param {string} [style] */
export const withNotice = (state, text, style = 'label') => ({
  ...state,
  notice: { text, style, at: state.now, until: state.now + NOTICE_TIME },
})

/** @template {{now: number}} S @param {S} state @param {string} command @param {string | null} error */
export const withReply = (state, command, error) =>
  error === null
    ? withNotice(state, `${command}: done`, 'good')
    : withNotice(state, `${command}: ${error}`, 'bad')

/**
 * @template {ViewState<any>} S
 * @param {S} state @param {number} now @param {(state: S) => boolean} isStale
 * @returns {S} the same object if nothing visible has changed
 */
export function onTick(state, now, isStale) {
  const over = state.notice !== null && now >= state.notice.until
  const next = { ...state, now, notice: over ? null : state.notice }
  // Snapshots contain the time. Only a stale screen shows a time without them.
  return over || isStale(next) ? next : state
}

/**
 * Adds a point, and null for each missed second.
 * @template {{time: number}} P
 * @param {(P | null)[]} points one per second, oldest first
 * @param {P} point @param {number} span maximum points kept
 */
export function withPoint(points, point, span) {
  const last = points.at(-1)
  if (!last) return [point]
  const missed = Math.round((point.time - last.time) / 1000) - 1
  if (missed < 0) {
    // A repeated second, or a clock set back: later points are invalid.
    const kept = points.findLastIndex(earlier => earlier !== null && earlier.time < point.time - 500) + 1
    return withPoint(points.slice(0, kept), point, span)
  }
  const gap = new Array(Math.min(missed, span)).fill(null)
  return [...points, ...gap, point].slice(-span)
}

/**
 * @template Row
 * @param {readonly Row[]} rows @param {readonly {name: string, value: (row: Row) => number}[]} sorts
 * @param {{column: string, down: boolean}} sort
 * @param {(a: Row, b: Row) => number} byName by the first column; breaks ties
 * @param {(row: Row, column: string) => boolean} isUnknown whether a row has no figure: it sorts last
 */
export function sortRows(rows, sorts, { column, down }, byName, isUnknown) {
  const { name, value } = sorts.find(({ name }) => name === column) ?? sorts[0]
  const sign = down ? -1 : 1
  if (name === sorts[0].name) return rows.toSorted((a, b) => sign * byName(a, b))
  return rows.toSorted((a, b) => {
    const unknown = Number(isUnknown(a, name)) - Number(isUnknown(b, name))
    if (unknown !== 0) return unknown
    return (isUnknown(a, name) ? 0 : sign * (value(a) - value(b))) || byName(a, b)
  })
}

/**
 * @template Id, State
 * @typedef {object} KeyOptions
 * @property {readonly {name: string, down: boolean}[]} sorts in the order of the key `s`
 * @property {number} charts number of charts
 * @property {(state: State) => Id[]} rows ids of the table's rows, sorted
 * @property {(state: State) => number} lines length of the open page
 */

/**
 * @template Id
 * @typedef {Pick<ViewState<any>, 'live' | 'frozen' | 'scroll' | 'sort' | 'chart' | 'notice' |
 *   'size'> & {view: string, selected: Id | null}} KeyState
 */

/** Screen rows outside the scrolling page. */
const FIXED_ROWS = 4
const PAGE_ROWS = 10

/** @template {KeyState<any>} State @param {State} state @param {State['view']} view */
export const toggleView = (state, view) => ({
  ...state,
  view: state.view === view ? 'main' : view,
  scroll: 0,
})

/**
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
