/** Scheme, a host name of at most 253 letters, port. A longer header is no origin, and costs no comparison. */
const MAX_LENGTH = 512

/**
 * Not a RegExp: it backtracks, and a few stars and one long header would keep a worker busy for hours. Here only the
 * last star moves on, so the time is at most the product of both lengths.
 *
 * @param {string} glob `*` is any run of characters, `?` is any one
 * @param {string} text
 */
function matches(glob, text) {
  let at = 0
  let star = -1
  let resume = 0
  for (let i = 0; i < text.length; ) {
    if (glob[at] === '*') {
      star = at++
      resume = i
    } else if (glob[at] === '?' || glob[at] === text[i]) {
      at++
      i++
    } else if (star !== -1) {
      at = star + 1
      i = ++resume
    } else return false
  }
  while (glob[at] === '*') at++
  return at === glob.length
}

/**
 * Which pages may connect (client protocol, section 18).
 * @param {string[]} allowed origins or globs; empty: only requests without an Origin header pass
 * @returns {(origin: string) => boolean} takes the header's value, '' if absent
 */
export function createOriginCheck(allowed) {
  if (allowed.includes('*')) return () => true
  const lowered = allowed.map(origin => origin.toLowerCase())
  const exact = new Set(lowered)
  const globs = lowered.filter(origin => /[*?]/.test(origin))
  return origin => {
    if (origin === '') return true
    if (origin.length > MAX_LENGTH) return false
    const lower = origin.toLowerCase()
    return exact.has(lower) || globs.some(glob => matches(glob, lower))
  }
}
