// Patterns of the configuration are written for Go's RE2. This turns them into RegExp with the same meaning, piece by
// piece, so that nothing changes its meaning in silence: what RE2 does not know or JavaScript cannot do is an error.
// They run on a backtracking engine here, unlike RE2: a pattern like `(a+)+$` can take very long.

const SYNTAX = '^$\\.*+?()[]{}|/'
const CLASS_SYNTAX = '\\]^-['

/** RE2's `\s`; JavaScript's own holds more. */
const SPACE = '\\t\\n\\f\\r '
/** What JavaScript's `\S` leaves out beyond RE2's `\s`. */
const WIDE_SPACE = '\\v\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000\\ufeff'

/** @type {Record<string, string>} */
const POSIX = {
  alnum: '0-9A-Za-z',
  alpha: 'A-Za-z',
  ascii: '\\x00-\\x7f',
  blank: '\\t ',
  cntrl: '\\x00-\\x1f\\x7f',
  digit: '0-9',
  graph: '!-~',
  lower: 'a-z',
  print: ' -~',
  punct: '!-\\/:-@\\[-`\\{-~',
  space: '\\t\\n\\v\\f\\r ',
  upper: 'A-Z',
  word: '0-9A-Za-z_',
  xdigit: '0-9A-Fa-f',
}

/**
 * @typedef {object} Piece
 * @property {string} source JavaScript source
 * @property {boolean} single one character, so it may stand at the end of a range
 */

/** Reads one pattern from left to right. */
class Reader {
  /** @type {string} */
  #text
  #at = 0

  /** @param {string} text */
  constructor(text) {
    this.#text = text
  }

  /** @returns {string} JavaScript source with the `u` flag's rules */
  translate() {
    let out = ''
    while (this.#at < this.#text.length) out += this.#next()
    return out
  }

  /** @param {RegExp} sticky */
  #take(sticky) {
    sticky.lastIndex = this.#at
    const match = sticky.exec(this.#text)
    if (match !== null) this.#at = sticky.lastIndex
    return match
  }

  #next() {
    const text = this.#text
    const c = text[this.#at]
    if (c === '\\') return this.#escape()
    if (c === '[') return this.#class()
    if (c === '(') return this.#group()
    if (c === '{') {
      const repeat = this.#take(/\{\d+(?:,\d*)?\}/y)
      if (repeat !== null) return repeat[0]
    }
    this.#at++
    // RE2 takes these as they are where they open or close nothing.
    return c === '{' || c === '}' || c === ']' ? `\\${c}` : c
  }

  #group() {
    if (this.#take(/\(\?:/y) !== null) return '(?:'
    const named = this.#take(/\(\?P?<(\w+)>/y)
    if (named !== null) return `(?<${named[1]}>`
    if (this.#text[this.#at + 1] === '?') {
      throw new Error(`"${this.#text.slice(this.#at, this.#at + 4)}" is not supported here`)
    }
    this.#at++
    return '('
  }

  #escape() {
    const quoted = this.#take(/\\Q([\s\S]*?)(?:\\E|$)/y)
    if (quoted !== null) return [...quoted[1]].map(c => (SYNTAX.includes(c) ? `\\${c}` : c)).join('')
    const c = this.#text[this.#at + 1]
    if (c === 'A' || c === 'z' || c === 'b' || c === 'B' || c === 's' || c === 'S') {
      this.#at += 2
      if (c === 'A') return '(?<![\\s\\S])'
      if (c === 'z') return '(?![\\s\\S])'
      if (c === 's') return `[${SPACE}]`
      if (c === 'S') return `[^${SPACE}]`
      return `\\${c}`
    }
    return this.#character(SYNTAX).source
  }

  /**
   * One escape that means the same inside and outside of a class.
   *
   * @param {string} syntax characters that stay escaped
   * @returns {Piece}
   */
  #character(syntax) {
    const hex = this.#take(/\\x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]+)\})/y)
    if (hex !== null) return { source: `\\u{${hex[1] ?? hex[2]}}`, single: true }
    const property = this.#take(/\\([pP])(?:([A-Z])|\{(\^?)([A-Za-z_]+)\})/y)
    if (property !== null) {
      const [, letter, short, not, long] = property
      const name = short ?? long
      const negated = (letter === 'P') !== (not === '^')
      const source = name.length <= 2 ? name : `Script=${name}`
      return { source: `\\${negated ? 'P' : 'p'}{${source}}`, single: false }
    }
    const c = this.#text[this.#at + 1]
    if (c === undefined) throw new Error('it ends with a backslash')
    this.#at += 2
    if ('dDwW'.includes(c)) return { source: `\\${c}`, single: false }
    if ('tnrfv'.includes(c)) return { source: `\\${c}`, single: true }
    if (c === 'a') return { source: '\\x07', single: true }
    if (/[!-/:-@[-`{-~]/.test(c)) return { source: syntax.includes(c) ? `\\${c}` : c, single: true }
    throw new Error(`"\\${c}" is not supported`)
  }

  #class() {
    const open = this.#take(/\[\^?/y)
    let out = open?.[0] ?? ''
    let first = true
    for (;;) {
      if (this.#at >= this.#text.length) throw new Error('"[" is not closed')
      if (this.#text[this.#at] === ']' && !first) break
      first = false
      const low = this.#member()
      out += low.source
      const next = this.#text[this.#at + 1]
      if (this.#text[this.#at] !== '-' || !low.single || next === undefined || next === ']') continue
      this.#at++
      const high = this.#member()
      if (!high.single) throw new Error('a range ends with a class')
      out += `-${high.source}`
    }
    this.#at++
    return `${out}]`
  }

  /** @returns {Piece} */
  #member() {
    const posix = this.#take(/\[:(\^?)(\w+):\]/y)
    if (posix !== null) {
      const source = POSIX[posix[2]]
      if (source === undefined || posix[1] === '^') throw new Error(`"${posix[0]}" is not supported`)
      return { source, single: false }
    }
    if (this.#text[this.#at] === '\\') {
      const c = this.#text[this.#at + 1]
      if (c !== 's' && c !== 'S') return this.#character(CLASS_SYNTAX)
      this.#at += 2
      return { source: c === 's' ? SPACE : `\\S${WIDE_SPACE}`, single: false }
    }
    const c = String.fromCodePoint(/** @type {number} */ (this.#text.codePointAt(this.#at)))
    this.#at += c.length
    return { source: CLASS_SYNTAX.includes(c) ? `\\${c}` : c, single: true }
  }
}

/**
 * @param {string} pattern RE2 syntax, as Go has it
 * @returns {RegExp} without state (no `g`, no `y`); unanchored unless the pattern anchors itself
 * @throws {Error} one clear sentence
 */
export function compilePattern(pattern) {
  // Flags count from where they stand; in front of everything (or right after `^`) that is the whole pattern.
  const flagged = /^(\^?)\(\?([a-zA-Z]+)\)/.exec(pattern)
  let flags = ''
  let rest = pattern
  try {
    if (flagged !== null) {
      for (const flag of flagged[2]) {
        if (!'ism'.includes(flag) || (flag === 'm' && flagged[1] !== '')) {
          throw new Error(`the flag "${flag}" is not supported`)
        }
        if (!flags.includes(flag)) flags += flag
      }
      rest = flagged[1] + pattern.slice(flagged[0].length)
    }
    // RE2 reads code points, and so does RegExp with `u`.
    return new RegExp(new Reader(rest).translate(), `${flags}u`)
  } catch (error) {
    throw new Error(`the pattern ${JSON.stringify(pattern)} cannot be used: ${error.message}`)
  }
}
