/**
 * Edits (insert, delete, replace, swap two neighbours) that make `b` of `a`: the optimal string alignment distance.
 * @param {string} a
 * @param {string} b
 */
function distance(a, b) {
  let before = /** @type {number[]} */ ([])
  let previous = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1]
      let edits = Math.min(previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (same ? 0 : 1))
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        edits = Math.min(edits, before[j - 2] + 1)
      }
      row.push(edits)
    }
    before = previous
    previous = row
  }
  return previous[b.length]
}

/** Edits that a forgotten leading section costs: `port` is near to `http_server.port`. */
const SECTION = 0.5

/** Nobody means a name this long; comparing it would only take time. */
const LONGEST = 200

/** Case, dots and dashes are no difference worth counting. @param {string} name */
const plain = name => name.toLowerCase().replace(/[-.]/g, '_')

/**
 * The known name that is nearest to an unknown one. Names may be paths with dots.
 * @param {string} name
 * @param {Iterable<string>} known the first of equally near ones wins
 * @returns {string} '' if nothing is known
 */
export function nearest(name, known) {
  const wanted = plain(name.slice(0, LONGEST))
  let best = ''
  let least = Number.POSITIVE_INFINITY
  for (const candidate of known) {
    const segments = candidate.split('.')
    for (let skipped = 0; skipped < segments.length; skipped++) {
      const edits = distance(wanted, plain(segments.slice(skipped).join('.'))) + skipped * SECTION
      if (edits < least) {
        least = edits
        best = candidate
      }
    }
  }
  return best
}
