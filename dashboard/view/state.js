/**
 * What every view has, whatever it shows.
 *
 * @template Picture
 * @typedef {object} ViewState
 * @property {{unicode: boolean, colors: boolean}} look what the terminal can show
 * @property {{columns: number, rows: number}} size of the terminal
 * @property {number} now Unix ms
 * @property {number} heard when the last snapshot came, Unix ms
 * @property {Picture} live what has come
 * @property {Picture | null} frozen what is shown while it is paused
 * @property {number} scroll lines above the screen
 * @property {{column: string, down: boolean}} sort
 * @property {number} chart the first one that is shown where not all fit
 * @property {{text: string, style: string, at: number, until: number} | null} notice
 */

/**
 * @typedef {{type: 'key', name: string, now: number}
 *   | {type: 'size', columns: number, rows: number}
 *   | {type: 'tick', now: number}} ViewAction
 */

/** ms for which a notice is shown. */
const NOTICE = 6000
/** ms without a snapshot after which the picture counts as old. */
export const STALE = 3000

/**
 * @template Picture
 * @param {object} options
 * @param {{unicode: boolean, colors: boolean}} options.look
 * @param {{columns: number, rows: number}} options.size
 * @param {number} options.now Unix ms
 * @param {string} options.sort the column by which it is sorted at first
 * @param {Picture} options.live
 * @returns {ViewState<Picture>}
 */
export const initialView = ({ look, size, now, sort, live }) => ({
  look,
  size,
  now,
  heard: now,
  live,
  frozen: null,
  scroll: 0,
  sort: { column: sort, down: false },
  chart: 0,
  notice: null,
})

/**
 * @template Picture
 * @param {{live: Picture, frozen: Picture | null}} state
 * @returns {Picture} what is on the screen
 */
export const shown = state => state.frozen ?? state.live

/**
 * @template {{now: number}} S
 * @param {S} state
 * @param {string} text
 * @param {string} [style]
 * @returns {S & {notice: {text: string, style: string, at: number, until: number}}}
 */
export const saying = (state, text, style = 'label') => ({
  ...state,
  notice: { text, style, at: state.now, until: state.now + NOTICE },
})

/**
 * @template {ViewState<any>} S
 * @param {S} state
 * @param {number} now
 * @param {(state: S) => boolean} isStale
 * @returns {S} the same one when nothing has changed that is seen
 */
export function onTick(state, now, isStale) {
  const over = state.notice !== null && now >= state.notice.until
  const next = { ...state, now, notice: over ? null : state.notice }
  // The time of day comes with the snapshots; without them the seconds of the wait are counted.
  return over || isStale(next) ? next : state
}
