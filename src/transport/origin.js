/** Scheme, a host name of at most 253 letters, port. What is longer is none, and several stars would take their time with it. */
const MAX_LENGTH = 512

/**
 * A glob of an origin as a RegExp: `*` is any run of characters, `?` is any one.
 * @param {string} pattern
 */
function compile(pattern) {
  const source = pattern
    .toLowerCase()
    .replace(/[.+^${}()|[\]\\]/g, '\\$&')
    .replaceAll('*', '.*')
    .replaceAll('?', '.')
  return new RegExp(`^${source}$`)
}

/**
 * Which pages may connect (client protocol, section 18).
 * @param {string[]} allowed origins or globs; empty: only requests without an Origin header pass
 * @returns {(origin: string) => boolean} takes the header's value, '' if absent
 */
export function createOriginCheck(allowed) {
  if (allowed.includes('*')) return () => true
  const exact = new Set(allowed.map(origin => origin.toLowerCase()))
  const patterns = allowed.filter(origin => /[*?]/.test(origin)).map(compile)
  return origin => {
    if (origin === '') return true
    if (origin.length > MAX_LENGTH) return false
    const lower = origin.toLowerCase()
    return exact.has(lower) || patterns.some(pattern => pattern.test(lower))
  }
}
