import { LIMITS } from '../src/metrics/limits.js'

/** @import { ProcessSample } from '../src/metrics/schema.js' */

/** @typedef {'good' | 'warn' | 'bad'} Health */

/** @param {number | null | undefined} value @param {keyof typeof LIMITS} limit name @returns {Health} */
export function health(value, limit) {
  const [warn, bad] = LIMITS[limit]
  if (typeof value !== 'number' || !(value >= warn)) return 'good'
  return value < bad ? 'warn' : 'bad'
}

/** @param {Health} state @returns {string} one character, for terminals without colours */
export const healthMark = state => ({ good: ' ', warn: '~', bad: '!' })[state]

/**
 * Colours a figure by its health. Without colours, appends a mark, or a blank if healthy.
 * @param {string} text @param {Health} state @param {boolean} colors @returns {[string, string]} a span
 */
export const healthSpan = (text, state, colors) => [
  colors ? text : `${text}${healthMark(state)}`,
  state === 'good' ? 'value' : state,
]

/** @param {ProcessSample['gc']} gc @returns {number} ms of all kinds of garbage collection */
export const gcPause = gc => gc.minor.pause + gc.major.pause + gc.incremental.pause + gc.weak.pause

/** @param {{user: number, system: number}} cpu shares of a core @returns {number} their sum */
export const totalCpu = cpu => cpu.user + cpu.system

/** @param {number} value counted in the interval @param {number} interval ms @returns {number} per second */
export const perSecond = (value, interval) => (interval > 0 ? (value * 1000) / interval : 0)

/** @param {object} figures @param {string} path `memory.rss` @returns {number} */
export const figureAt = (figures, path) =>
  path.split('.').reduce((/** @type {any} */ value, step) => value[step], figures)
