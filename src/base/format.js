// Number formatting, also for browsers: three significant digits; the next unit starts at 999.5. Units of sizes are
// powers of 1024, all others of 1000.

/** @typedef {'bytes' | 'bytes_s' | 'count' | 'count_s' | 'ms' | 'pct'} Unit of a column; pct: 0 to 100 */
/** @typedef {number | null | undefined} Value null, undefined and NaN: unknown */

export const UNKNOWN = '-'

const PREFIXES = ['', 'k', 'M', 'G', 'T', 'P']

/** @param {Value} value @returns {value is number} */
const isKnown = value => typeof value === 'number' && Number.isFinite(value)

/** @param {(value: number, ...rest: any[]) => string} format @returns {(value: Value) => string} */
const ifKnown = format => value => (isKnown(value) ? format(value) : UNKNOWN)

/** @param {number} value @returns {string} rounded, digits in groups: 1,234,567 */
const grouped = value =>
  Math.round(value)
    .toString()
    .replace(/\B(?=(?:\d{3})+$)/g, ',')

/** @param {number} value @returns {string} three significant digits, or all before the point: 0.25, 12.3, 1,234 */
function digits(value) {
  const size = Math.abs(value)
  if (size >= 99.95) return grouped(value)
  const text = value.toFixed(size >= 9.995 ? 1 : 2)
  // `12.0` is a rounded number, `12` an exact one.
  return Math.abs(Number(text) - value) <= size * 1e-9 ? `${Number(text)}` : text
}

/** @param {number} value @param {1000 | 1024} step @returns {{text: string, prefix: string}} */
function scaled(value, step) {
  let at = 0
  while (Math.abs(value) >= 999.5 && at < PREFIXES.length - 1) {
    value /= step
    at++
  }
  return { text: at === 0 ? grouped(value) : digits(value), prefix: PREFIXES[at] }
}

/** All digits: 1,234,567. */
export const whole = ifKnown(grouped)

/** All digits, or three significant below 100: 12,345, 12.3, 0.25. */
export const count = ifKnown(digits)

/** At most 5 characters (6 if negative): all digits below 10,000, then 12.3k, 1.23M. */
export const short = ifKnown(value => {
  if (Math.abs(value) < 9999.5) return grouped(value)
  const { text, prefix } = scaled(value, 1000)
  return `${text}${prefix}`
})

/** At most 7 characters: all digits up to 999,999, then 1.23M. */
export const quantity = ifKnown(value => (value >= 999_999.5 ? short(value) : grouped(value)))

/** At most 7 characters: 512 B, 45.6 MB, 16 GB. */
export const bytes = ifKnown(value => {
  const { text, prefix } = scaled(Math.max(0, value), 1024)
  return `${text} ${prefix.toUpperCase()}B`
})

/** At most 5 characters: 512B, 45.6M, 16G. */
export const shortBytes = ifKnown(value => {
  const { text, prefix } = scaled(Math.max(0, value), 1024)
  return `${text}${prefix.toUpperCase() || 'B'}`
})

/** Milliseconds in at most 5 characters: 0.25, 12.3, 1,234, then seconds: 12.3s. */
export const ms = ifKnown(value =>
  value < 9999.5
    ? digits(value)
    : value < 99_950
      ? `${digits(value / 1000)}s`
      : `${Math.min(9999, Math.round(value / 1000))}s`,
)

/** Milliseconds: 0.25 ms, 12.3 ms, 1,234 ms, then 12.3 s. */
export const milliseconds = ifKnown(value =>
  Math.abs(value) < 9999.5 ? `${digits(value)} ms` : `${digits(value / 1000)} s`,
)

/** Percent, three significant digits: 45.6 %. */
export const percent = ifKnown(value => `${digits(value)} %`)

/** Share as whole percent, at most 5 characters below 100: 0.456 is 46%. */
export const share = ifKnown(value => `${Math.round(value * 100)}%`)

/** @type {Record<Unit, (value: Value) => string>} */
const VALUES = {
  bytes,
  bytes_s: value => `${bytes(value)}/s`,
  count,
  count_s: value => `${count(value)}/s`,
  ms: milliseconds,
  pct: percent,
}

/** @param {number} value @returns {string} on an axis of a terminal: 0.001, 0.5, 20k */
export const tick = value => (Math.abs(value) < 10 ? `${Number(value.toPrecision(3))}` : short(value))

/** @param {Value} value @param {Unit} unit @returns {string} in legends and tables */
export const formatValue = (value, unit) => (isKnown(value) ? VALUES[unit](value) : UNKNOWN)

/** @param {number} value @param {Unit} unit @returns {string} on an axis: as short as possible */
export function formatTick(value, unit) {
  if (unit === 'ms' && value >= 1000) return `${digits(value / 1000)} s`
  if (unit === 'count') return short(value)
  if (unit === 'count_s') return value === 0 ? '0' : `${short(value)}/s`
  return unit === 'bytes_s' && value === 0 ? '0' : VALUES[unit](value)
}

/** @param {number} value */
const two = value => value.toString().padStart(2, '0')

/** From ms: 4.2 s, 12:34, 4:12:34, 3 d 04:12. */
export const duration = ifKnown(time => {
  if (time < 59_950) return `${(Math.max(0, time) / 1000).toFixed(1)} s`
  const seconds = Math.round(time / 1000)
  const [days, hours, minutes] = [seconds / 86_400, (seconds / 3600) % 24, (seconds / 60) % 60].map(
    Math.floor,
  )
  if (days > 0) return `${days} d ${two(hours)}:${two(minutes)}`
  return hours > 0 ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`
})

/** @param {number} seconds since a start, on an axis @returns {string} 0, 45s, 12m30, 2h05, 2h05:30 */
export function elapsed(seconds) {
  const whole = Math.round(seconds)
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60]
  if (whole < 60) return whole === 0 ? '0' : `${whole}s`
  if (hours === 0) return `${minutes}m${rest === 0 ? '' : two(rest)}`
  return `${hours}h${minutes + rest === 0 ? '' : two(minutes)}${rest === 0 ? '' : `:${two(rest)}`}`
}

/** @param {number} time Unix ms @returns {string} local time: 14:03:22 */
export function clock(time) {
  const date = new Date(time)
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(':')
}

/** @param {number} count @param {string} noun @returns {string} 1 node, 2 nodes */
export const plural = (count, noun) => `${grouped(count)} ${noun}${count === 1 ? '' : 's'}`
