// Values as text in messages, durations in Go's form, and values at key paths.

/** Go's units, in ms; those below a millisecond are only read for compatibility. */
const UNITS = new Map([
  ['ns', 1e-6],
  ['us', 1e-3],
  ['µs', 1e-3],
  ['μs', 1e-3],
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
])

const TERM = '(\\d+(?:\\.\\d*)?|\\.\\d+)(ns|us|µs|μs|ms|s|m|h)'
const DURATION = new RegExp(`^(${TERM})+$`)
const TERMS = new RegExp(TERM, 'g')

/** A value in a message. @param {unknown} value */
export function show(value) {
  if (Array.isArray(value)) return 'a list'
  if (value !== null && typeof value === 'object') return 'an object'
  const text = JSON.stringify(value) ?? String(value)
  return text.length > 60 ? `${text.slice(0, 57)}...` : text
}

/** @param {string} text Go's form: `25s`, `300ms`, `1h30m`; or `0` @returns {number} ms */
export function parseDuration(text) {
  if (text === '0') return 0
  if (/^-/.test(text)) throw new Error(`${show(text)} is negative`)
  if (!DURATION.test(text)) {
    const hint = /^\d+(\.\d+)?$/.test(text)
      ? `has no unit; write "${text}s" or "${text}ms"`
      : 'is not a duration like "25s", "300ms" or "1h30m"'
    throw new Error(`${show(text)} ${hint}`)
  }
  let ms = 0
  for (const [, amount, unit] of text.matchAll(TERMS))
    ms += Number(amount) * /** @type {number} */ (UNITS.get(unit))
  // Rounds off errors of binary fractions: 0.3s is 300 ms.
  ms = Math.round(ms * 1e6) / 1e6
  if (!Number.isInteger(ms)) throw new Error(`${show(text)} is not a whole number of milliseconds`)
  return ms
}

/** @param {number} ms */
export function formatDuration(ms) {
  if (ms === 0 || ms % 1000 !== 0) return `${ms}ms`
  if (ms % 3_600_000 === 0) return `${ms / 3_600_000}h`
  return ms % 60_000 === 0 ? `${ms / 60_000}m` : `${ms / 1000}s`
}

/** The value at a key path. @param {Record<string, any>} tree @param {string} path @returns {any} */
export const get = (tree, path) => path.split('.').reduce((below, segment) => below[segment], tree)

/** Sets the value at a key path. @param {Record<string, any>} tree @param {string} path @param {any} value */
export function put(tree, path, value) {
  const segments = path.split('.')
  const last = /** @type {string} */ (segments.pop())
  for (const segment of segments) tree = tree[segment] ??= {}
  tree[last] = value
}
