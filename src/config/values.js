/** @typedef {{[key: string]: unknown}} Values */

/** Go's units, in ms. @type {Record<string, number>} */
const UNITS = { ns: 1e-6, us: 1e-3, µs: 1e-3, μs: 1e-3, ms: 1, s: 1000, m: 60_000, h: 3_600_000 }

const TERM = `(\\d+(?:\\.\\d*)?|\\.\\d+)(${Object.keys(UNITS).join('|')})`
const DURATION = new RegExp(`^(${TERM})+$`)
const TERMS = new RegExp(TERM, 'g')

/** For messages. @param {unknown} value */
export function show(value) {
  if (Array.isArray(value)) return 'a list'
  if (value !== null && typeof value === 'object') return 'an object'
  const text = JSON.stringify(value) ?? String(value)
  return text.length > 60 ? `${text.slice(0, 57)}...` : text
}

/** In ms. @param {string} text `25s`, `300ms`, `1h30m`; or `0` */
export function parseDuration(text) {
  if (text === '0') return 0
  if (text.startsWith('-')) throw new Error(`${show(text)} is negative`)
  if (!DURATION.test(text)) {
    const hint = /^\d+(\.\d+)?$/.test(text)
      ? `has no unit; write "${text}s" or "${text}ms"`
      : 'is not a duration like "25s", "300ms" or "1h30m"'
    throw new Error(`${show(text)} ${hint}`)
  }
  let ms = 0
  for (const [, amount, unit] of text.matchAll(TERMS)) ms += Number(amount) * UNITS[unit]
  // 0.3s is 300 ms.
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

/** @param {unknown} tree with the path's sections @param {string} path @returns {unknown} */
export const get = (tree, path) =>
  path.split('.').reduce((below, segment) => /** @type {Values} */ (below)[segment], tree)

/** @param {Values} tree @param {string} path @param {unknown} value */
export function put(tree, path, value) {
  const segments = path.split('.')
  const last = /** @type {string} */ (segments.pop())
  for (const segment of segments) tree = /** @type {Values} */ ((tree[segment] ??= {}))
  tree[last] = value
}
