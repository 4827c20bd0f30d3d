// Patterns of channel names: `*` any text (across namespace boundaries), `?` one character, `[ab]`, `[a-z]`,
// `[!a-z]` one of a set, `{a,b}` one of several patterns, `\` escapes the next character.
// A plain regular expression would backtrack for minutes with a dozen stars. So alternatives are expanded first, and
// text between two stars is matched at its first place: later ones never match more.

const MAX_LENGTH = 4096
/** Maximum characters after the expansion. */
const MAX_EXPANDED = 16_384
const MAX_DEPTH = 16
/** Maximum stars after the expansion: each may scan the whole name. */
const MAX_STARS = 256

const STAR = Symbol('*')
const OPEN = Symbol('{')
const COMMA = Symbol(',')
const CLOSE = Symbol('}')

const SPECIAL = new Map([
  ['*', STAR],
  ['{', OPEN],
  [',', COMMA],
  ['}', CLOSE],
])

/** @typedef {string | symbol} Piece regular expression of one character, or a symbol */

/** @param {string} character */
const literal = character => character.replace(/[\\^$.*+?()[\]{}|/]/, '\\$&')

/** @param {string} character */
const member = character => character.replace(/[\\^[\]-]/, '\\$&')

/** @param {string} pattern @returns {Piece[]} */
function split(pattern) {
  const characters = [...pattern]
  let at = 0
  const next = () => {
    if (at >= characters.length) throw new SyntaxError('unfinished pattern')
    return characters[at++]
  }
  const set = () => {
    let text = '['
    let character = next()
    if (character === '!' || character === '^') {
      text += '^'
      character = next()
    }
    if (character === ']') throw new SyntaxError('empty set')
    for (let first = true; character !== ']'; character = next(), first = false) {
      // Within a set, a hyphen makes a range.
      if (character === '-' && !first && characters[at] !== ']') text += '-'
      else text += member(character === '\\' ? next() : character)
    }
    return `${text}]`
  }

  /** @type {Piece[]} */
  const pieces = []
  while (at < characters.length) {
    const character = next()
    const special = SPECIAL.get(character)
    if (special !== undefined) pieces.push(special)
    else if (character === '?') pieces.push('.')
    else if (character === '[') pieces.push(set())
    else pieces.push(literal(character === '\\' ? next() : character))
  }
  return pieces
}

/** @param {Piece[][]} flats */
function bounded(flats) {
  if (flats.reduce((sum, flat) => sum + flat.length + 1, 0) > MAX_EXPANDED)
    throw new SyntaxError('too many alternatives')
  return flats
}

/**
 * Expands alternatives to characters and stars.
 * @param {Iterator<Piece>} pieces @param {number} depth
 * @returns {Piece[][]}
 */
function expand(pieces, depth) {
  if (depth > MAX_DEPTH) throw new SyntaxError('too many braces')
  const inside = depth > 0
  /** @type {Piece[][]} */
  const finished = []
  /** @type {Piece[][]} */
  let flats = [[]]
  for (let step = pieces.next(); !step.done; step = pieces.next()) {
    const piece = step.value
    if (piece === OPEN) {
      const tails = expand(pieces, depth + 1)
      if (flats.length * tails.length > MAX_EXPANDED) throw new SyntaxError('too many alternatives')
      flats = bounded(flats.flatMap(head => tails.map(tail => [...head, ...tail])))
    } else if (inside && piece === COMMA) {
      finished.push(...flats)
      flats = [[]]
    } else if (inside && piece === CLOSE) {
      return bounded([...finished, ...flats])
    } else {
      const plain = piece === COMMA ? ',' : piece === CLOSE ? '\\}' : piece
      for (const flat of flats) flat.push(plain)
    }
  }
  if (inside) throw new SyntaxError('unclosed {')
  return bounded(flats)
}

/** @param {Piece[]} flat @param {() => number} group next group number */
function translate(flat, group) {
  /** @type {string[]} */
  const segments = ['']
  for (const piece of flat) {
    if (typeof piece === 'string') segments[segments.length - 1] += piece
    else segments.push('')
  }
  const head = segments[0]
  if (segments.length === 1) return head
  const tail = /** @type {string} */ (segments.pop())
  // A matched lookahead never backtracks.
  const middle = segments
    .slice(1)
    .filter(segment => segment !== '')
    .map(segment => `(?=(.*?${segment}))\\${group()}`)
  return `${head}${middle.join('')}.*${tail}`
}

/** Undefined: malformed or too large. @param {string} pattern */
export function compileGlob(pattern) {
  if (pattern.length > MAX_LENGTH) return undefined
  try {
    let groups = 0
    const group = () => ++groups
    const flats = expand(split(pattern).values(), 0)
    const stars = flats.reduce((sum, flat) => sum + flat.filter(piece => piece === STAR).length, 0)
    if (stars > MAX_STARS) return undefined
    return new RegExp(`^(?:${flats.map(flat => translate(flat, group)).join('|')})$`, 'su')
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}
