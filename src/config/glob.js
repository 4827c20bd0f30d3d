// Patterns of channel names: `*` any text (namespace boundaries included), `?` one character, `[ab]`, `[a-z]`,
// `[!a-z]` one of a set, `{a,b}` one of several patterns, `\` escapes the next character.
// A plain translation to a regular expression would backtrack for minutes with a dozen stars. So alternatives are
// expanded first, and the text between two stars is matched at its first place only: a later place can never match
// more, since the next star covers what lies between.

const MAX_LENGTH = 4096
/** Characters that a pattern may expand to. */
const MAX_EXPANDED = 16_384
const MAX_DEPTH = 16
/** Stars that a pattern may expand to: each may look through the whole name. */
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

/** @typedef {string | symbol} Piece a regular expression for one character, or one of the symbols */

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
      // A hyphen at either end is a member, else it makes a range.
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
 * Expands alternatives.
 * @param {Iterator<Piece>} pieces @param {number} depth of open braces; within them a `}` must follow
 * @returns {Piece[][]} characters and stars only
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

/** @param {Piece[]} flat @param {() => number} group next group number @returns {string} a regular expression */
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
  // A lookahead is not entered again once it has matched.
  const middle = segments
    .slice(1)
    .filter(segment => segment !== '')
    .map(segment => `(?=(.*?${segment}))\\${group()}`)
  return `${head}${middle.join('')}.*${tail}`
}

/** @param {string} pattern @returns {RegExp | undefined} undefined if the pattern is malformed or too large */
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
