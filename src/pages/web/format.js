// Numbers as text. Sizes use 1024: 16 GB of memory are 16 GB.

/** @typedef {'bytes' | 'bytes_s' | 'count' | 'count_s' | 'ms' | 'pct'} Unit */

const SIZES = ['B', 'KB', 'MB', 'GB', 'TB', 'PB']
const SCALES = ['', 'k', 'M', 'G', 'T']

/** Made on first use: it takes 20 ms. @type {Intl.NumberFormat | undefined} */
let numberFormat

/** @param {number} value @returns {string} a whole number like 1,234 */
function grouped(value) {
  numberFormat ??= new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
  return numberFormat.format(value)
}

/** @param {number} value @returns {string} at least three figures: 1.23, 12.3, 123, 1,234 */
export function figures(value) {
  const size = Math.abs(value)
  if (size >= 99.95) return grouped(value)
  if (size >= 9.995 || size === 0) return trimmed(value.toFixed(1))
  return trimmed(value.toFixed(2))
}

/** @param {string} text @returns {string} without trailing zeros */
const trimmed = text => (text.includes('.') ? text.replace(/\.?0+$/, '') : text)

/**
 * @param {number} value @param {number} base 1000 or 1024
 * @param {readonly string[]} names @param {string} between value and name
 */
function scaled(value, base, names, between) {
  let step = 0
  let rest = value
  // 999.96 would become 1,000.
  while (Math.abs(rest) >= base * 0.9995 && step < names.length - 1) {
    rest /= base
    step++
  }
  return `${figures(rest)}${names[step] === '' ? '' : between}${names[step]}`
}

/** @param {number} value */
export const bytes = value => scaled(Math.round(value * 100) / 100, 1024, SIZES, '\u202f')

/** @param {number} value @returns {string} short: 12.3k */
export const short = value => scaled(value, 1000, SCALES, '')

/** @param {number} value @returns {string} 12,345 */
export const count = value => (Math.abs(value) < 100 ? figures(value) : grouped(value))

/** @param {number} value ms */
export const milliseconds = value =>
  Math.abs(value) >= 9999.5 ? `${figures(value / 1000)}\u202fs` : `${figures(value)}\u202fms`

/** @param {number} value */
export const percent = value => `${figures(value)}\u202f%`

/** @type {Record<Unit, (value: number) => string>} in legends and tables */
const VALUES = {
  bytes,
  bytes_s: value => `${bytes(value)}/s`,
  count,
  count_s: value => `${count(value)}/s`,
  ms: milliseconds,
  pct: percent,
}

/** @type {Record<Unit, (value: number) => string>} on axes: as short as possible */
const TICKS = {
  bytes,
  bytes_s: value => (value === 0 ? '0' : `${bytes(value)}/s`),
  count: short,
  count_s: value => (value === 0 ? '0' : `${short(value)}/s`),
  ms: value => (value >= 1000 ? `${short(value / 1000)}\u202fs` : `${figures(value)}\u202fms`),
  pct: percent,
}

/** @param {number | null | undefined} value @param {Unit} unit @returns {string} a dash if unknown */
export const formatValue = (value, unit) =>
  value === null || value === undefined || Number.isNaN(value) ? '–' : VALUES[unit](value)

/** @param {number} value @param {Unit} unit */
export const formatTick = (value, unit) => TICKS[unit](value)

/** @param {number} value */
const two = value => String(value).padStart(2, '0')

/** @param {number} seconds @returns {string} 0, 45s, 12m30, 2h05, 2h05:30 */
export function duration(seconds) {
  const whole = Math.round(seconds)
  if (whole === 0) return '0'
  if (whole < 60) return `${whole}s`
  const minutes = Math.floor(whole / 60)
  if (minutes < 60) return whole % 60 === 0 ? `${minutes}m` : `${minutes}m${two(whole % 60)}`
  const rest = minutes % 60
  return rest === 0 && whole % 60 === 0
    ? `${Math.floor(minutes / 60)}h`
    : `${Math.floor(minutes / 60)}h${two(rest)}${whole % 60 === 0 ? '' : `:${two(whole % 60)}`}`
}

/** @param {number} time unix ms @returns {string} local time: 14:03:22 */
export const clock = time => {
  const date = new Date(time)
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(':')
}
