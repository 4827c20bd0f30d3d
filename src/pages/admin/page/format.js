// Numbers for people.

import { LIMITS } from '../../../metrics/limits.js'

/** By 1024, as in the charts. */
const UNITS = ['B', 'KB', 'MB', 'GB', 'TB']

/** Unknown. */
export const NOTHING = '–'

/** @param {number | null} bytes */
export function bytes(bytes) {
  if (bytes === null) return NOTHING
  let unit = 0
  let value = bytes
  while (value >= 1000 && unit < UNITS.length - 1) {
    value /= 1024
    unit++
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`
}

/** @param {number} count */
export const whole = count => Math.round(count).toLocaleString('en')

/** @param {number} count @returns {string} at most four digits */
export function short(count) {
  if (count < 10_000) return whole(count)
  const [share, unit] = count < 1e6 ? [count / 1e3, 'k'] : [count / 1e6, 'M']
  return `${share.toFixed(share < 100 ? 1 : 0)}${unit}`
}

/** @param {number} ms */
export const ms = ms => (ms < 10 ? ms.toFixed(1) : whole(ms))

/** @param {number | null} share 0 to 1 */
export const percent = share =>
  share === null ? NOTHING : `${(share * 100).toFixed(share < 0.0995 ? 1 : 0)}\u00a0%`

/** @param {number} ms @returns {string} the two largest units */
export function duration(ms) {
  const s = Math.floor(ms / 1000)
  if (s < 60) return `${s} s`
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`
  if (s < 86_400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`
  return `${Math.floor(s / 86_400)} d ${Math.floor((s % 86_400) / 3600)} h`
}

/** @param {keyof typeof LIMITS} limit @returns {(value: number) => 'good' | 'warn' | 'bad'} a class */
export const healthBy = limit => value => {
  const [warn, bad] = LIMITS[limit]
  return value < warn ? 'good' : value < bad ? 'warn' : 'bad'
}

/** The same, but '' for good. @param {keyof typeof LIMITS} limit @returns {(value: number) => '' | 'warn' | 'bad'} */
export const alarmBy = limit => {
  const health = healthBy(limit)
  return value => {
    const state = health(value)
    return state === 'good' ? '' : state
  }
}
