// Numbers as text of bounded width, and their health.

import { LIMITS } from '../src/metrics/limits.js'

/** @import { ProcessSample } from '../src/metrics/schema.js' */

const UNITS = ['', 'k', 'M', 'G', 'T', 'P']
/** Text of an unknown figure. */
export const UNKNOWN = '-'

/** @typedef {'good' | 'warn' | 'bad'} Health */

/** @param {number} value 0 to 1000 @returns {string} three significant digits: at most 4 characters */
function digits(value) {
  if (value >= 99.95) return value.toFixed(0)
  return value >= 9.995 ? value.toFixed(1) : value.toFixed(2)
}

/** @param {number} value @param {1000 | 1024} step factor from one unit to the next @returns {{text: string, unit: number}} */
function scaled(value, step) {
  let unit = 0
  while (value >= 999.5 && unit < UNITS.length - 1) {
    value /= step
    unit++
  }
  return { text: unit === 0 ? Math.round(value).toString() : digits(value), unit }
}

/** @param {number | null | undefined} value @returns {value is number} */
const isKnown = value => typeof value === 'number' && Number.isFinite(value)

/**
 * @param {number | null | undefined} value
 * @returns {string} all digits below 10,000, then 12.3k, 1.23M ...: at most 5 characters; negative: one more
 */
export function count(value) {
  if (!isKnown(value)) return UNKNOWN
  if (value < 0) return `-${count(-value)}`
  if (value < 9999.5) return whole(value)
  const { text, unit } = scaled(value, 1000)
  return `${text}${UNITS[unit]}`
}

/** @param {number | null | undefined} value @returns {string} all digits, grouped: 1,234,567 */
export function whole(value) {
  if (!isKnown(value)) return UNKNOWN
  return Math.round(value)
    .toString()
    .replace(/\B(?=(?:\d{3})+$)/g, ',')
}

/**
 * @param {number | null | undefined} value
 * @returns {string} all digits up to 999,999, then 1.23M ...: at most 7 characters
 */
export const quantity = value => (isKnown(value) && value >= 999_999.5 ? count(value) : whole(value))

/**
 * @param {number | null | undefined} value bytes
 * @returns {string} 512B, 45.6M, 1.23G: at most 5 characters; units of 1024
 */
export function bytes(value) {
  if (!isKnown(value)) return UNKNOWN
  const { text, unit } = scaled(Math.max(0, value), 1024)
  return `${text}${unit === 0 ? 'B' : UNITS[unit].toUpperCase()}`
}

/**
 * @param {number | null | undefined} value bytes
 * @returns {string} 512 B, 45.6 MB, 1.23 GB: at most 7 characters; units of 1024
 */
export function size(value) {
  if (!isKnown(value)) return UNKNOWN
  const { text, unit } = scaled(Math.max(0, value), 1024)
  return `${text} ${UNITS[unit].toUpperCase()}B`
}

/**
 * @param {number | null | undefined} value ms
 * @returns {string} 0.4, 12.3, 1234, then seconds, 12.3s: at most 5 characters
 */
export function ms(value) {
  if (!isKnown(value)) return UNKNOWN
  if (value < 99.95) return value.toFixed(1)
  if (value < 9999.5) return Math.round(value).toString()
  const seconds = value / 1000
  return seconds < 99.95 ? `${seconds.toFixed(1)}s` : `${Math.min(9999, Math.round(seconds))}s`
}

/** @param {number | null | undefined} share 0.45 @returns {string} 45%: at most 5 characters below 100 */
export const percent = share => (isKnown(share) ? `${Math.round(share * 100)}%` : UNKNOWN)

/** @param {number} value counted in the interval @param {number} interval ms @returns {number} per second */
export const perSecond = (value, interval) => (interval > 0 ? (value * 1000) / interval : 0)

/** @param {number} value */
const twoDigits = value => value.toString().padStart(2, '0')

/** @param {number | null | undefined} time ms @returns {string} 4.2 s, 12:34, 4:12:34, 3 d 04:12 */
export function duration(time) {
  if (!isKnown(time)) return UNKNOWN
  if (time < 59_950) return `${(Math.max(0, time) / 1000).toFixed(1)} s`
  const seconds = Math.round(time / 1000)
  const [days, hours, minutes] = [seconds / 86_400, (seconds / 3600) % 24, (seconds / 60) % 60].map(
    Math.floor,
  )
  if (days > 0) return `${days} d ${twoDigits(hours)}:${twoDigits(minutes)}`
  return hours > 0
    ? `${hours}:${twoDigits(minutes)}:${twoDigits(seconds % 60)}`
    : `${minutes}:${twoDigits(seconds % 60)}`
}

/** @param {number} time Unix ms @returns {string} local time: 14:03:22 */
export function clock(time) {
  const date = new Date(time)
  return `${twoDigits(date.getHours())}:${twoDigits(date.getMinutes())}:${twoDigits(date.getSeconds())}`
}

/** @param {number | null | undefined} value @param {keyof typeof LIMITS} limit name @returns {Health} */
export function health(value, limit) {
  const [warn, bad] = LIMITS[limit]
  if (!isKnown(value) || value < warn) return 'good'
  return value < bad ? 'warn' : 'bad'
}

/** @param {Health} state @returns {string} one character, for terminals without colours */
export const healthMark = state => ({ good: ' ', warn: '~', bad: '!' })[state]

/**
 * Colours a figure by its health. Without colours a mark follows it, a blank if it is healthy.
 * @param {string} text @param {Health} state @param {boolean} colors @returns {[string, string]} a span
 */
export const healthSpan = (text, state, colors) => [
  colors ? text : `${text}${healthMark(state)}`,
  state === 'good' ? 'value' : state,
]

/** @param {ProcessSample['gc']} gc @returns {number} ms of all kinds of garbage collection */
export const gcPause = gc => gc.minor.pause + gc.major.pause + gc.incremental.pause + gc.weak.pause

/** @param {{user: number, system: number}} cpu shares of a core @returns {number} both together */
export const totalCpu = cpu => cpu.user + cpu.system
