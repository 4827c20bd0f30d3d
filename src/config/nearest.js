/**
 * Optimal string alignment distance: edits (insert, delete, replace, swap neighbours) from `a` to `b`.
 * @param {string} a @param {string} b
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

/** Edits that a missing word costs: `port` is near `http_server.port`. */
const WORD = 0.5

/** Longer names are cut: no known name is longer, and comparing takes quadratic time. */
const LONGEST = 200

/** Differences in case, dots and dashes do not count. @param {string} name */
const plain = name => name.toLowerCase().replace(/[-.]/g, '_')

/** More edits make another name, whatever its length. */
const MOST_EDITS = 3

/**
 * One error in three letters is a slip; one in four if words are missing. More is another word.
 * @param {number} edits @param {string} typed @param {string} part of a known name
 * @param {boolean} whole whether `part` is the whole name
 */
function isSlip(edits, typed, part, whole) {
  const shortest = Math.min(typed.length, part.length)
  const longest = Math.max(typed.length, part.length)
  const most = whole ? Math.max(1, Math.floor(longest / 3)) : Math.floor(longest / 4)
  return edits <= Math.min(MOST_EDITS, most) && edits < shortest
}

/**
 * The known name nearest to an unknown one, which may lack words at its ends. Names may be paths with dots.
 * @param {string} name @param {Iterable<string>} known the first of equally near ones wins
 * @returns {string} '' if none is near enough
 */
export function nearest(name, known) {
  const wanted = plain(name.slice(0, LONGEST))
  let best = ''
  let least = Number.POSITIVE_INFINITY
  for (const candidate of known) {
    const words = plain(candidate).split('_')
    for (let from = 0; from < words.length; from++) {
      for (let to = words.length; to > from; to--) {
        const part = words.slice(from, to).join('_')
        const edits = distance(wanted, part)
        const cost = edits + (words.length - (to - from)) * WORD
        if (cost >= least || !isSlip(edits, wanted, part, to - from === words.length)) continue
        least = cost
        best = candidate
      }
    }
  }
  return best
}

/**
 * The end of an error about an unknown name.
 * @param {string} name @param {Iterable<string>} known @param {string} [before] prefix of known names: `--`
 * @returns {string} `; did you mean port?`, or '' if none is near
 */
export function didYouMean(name, known, before = '') {
  const best = nearest(name, known)
  return best === '' ? '' : `; did you mean ${before}${best}?`
}
