/** Optimal string alignment distance (insert, delete, replace, swap neighbours). @param {string} a @param {string} b */
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

/** Edits of a missing word: `port` is near `http_server.port`. */
const WORD = 0.5

/** Maximum length of a compared name: comparing takes quadratic time. */
const LONGEST = 200

/** Ignores case, dots and dashes. @param {string} name */
const plain = name => name.toLowerCase().replace(/[-.]/g, '_')

const MAX_EDITS = 3

/**
 * Allows one error in three letters, one in four if words are missing.
 * @param {number} edits @param {string} typed @param {string} part of a known name @param {boolean} whole
 */
function isSlip(edits, typed, part, whole) {
  const shortest = Math.min(typed.length, part.length)
  const longest = Math.max(typed.length, part.length)
  const max = whole ? Math.max(1, Math.floor(longest / 3)) : Math.floor(longest / 4)
  return edits <= Math.min(MAX_EDITS, max) && edits < shortest
}

/**
 * The nearest known name; `name` may lack words at its ends; '' if none.
 * @param {string} name @param {Iterable<string>} known the first of equally near ones wins
 */
export function nearest(name, known) {
  const wanted = plain(name.slice(0, LONGEST))
  let best = ''
  let min = Number.POSITIVE_INFINITY
  for (const candidate of known) {
    const words = plain(candidate).split('_')
    for (let from = 0; from < words.length; from++) {
      for (let to = words.length; to > from; to--) {
        const part = words.slice(from, to).join('_')
        const edits = distance(wanted, part)
        const cost = edits + (words.length - (to - from)) * WORD
        if (cost >= min || !isSlip(edits, wanted, part, to - from === words.length)) continue
        min = cost
        best = candidate
      }
    }
  }
  return best
}

/**
 * Ends an error about an unknown name.
 * @param {string} name @param {Iterable<string>} known @param {string} [before] `--`
 */
export function didYouMean(name, known, before = '') {
  const best = nearest(name, known)
  return best === '' ? '' : `; did you mean ${before}${best}?`
}
