/**
 * The state common to the dashboard and `halley fleet status`.
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
 * @param {string} options.sort first sort column
 * @param {Picture} options.live @returns {ViewState<Picture>}
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

/**
 * @template {{now: number}} S
 * @param {S} state @param {string} text @param {string} [style]
 * @returns {S & {notice: {text: string, style: string, at: number, until: number}}}
 */
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
  // Snapshots bring the time. Only a stale screen shows a time that grows without them.
  return over || isStale(next) ? next : state
}

/**
 * Adds a point, and null for each missed second.
 * @template {{time: number}} P
 * @param {(P | null)[]} points one per second, oldest first
 * @param {P} point @param {number} span maximum points kept
 * @returns {(P | null)[]}
 */
export function withPoint(points, point, span) {
  const last = points.at(-1)
  if (!last) return [point]
  const missed = Math.round((point.time - last.time) / 1000) - 1
  if (missed < 0) {
    // The same second again, or a clock set back: later points are invalid.
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
 * @param {(row: Row, column: string) => boolean} isUnknown whether a row has no figure there: it comes last
 * @returns {Row[]}
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
