// Payloads: see Payload in schema.js. Their padding says how long they are and tells their places, so that a receiver who was told
// nothing sees at a few bytes whether one is whole:
//
//   {"t":1795267980383811,"s":17,"c":3735928559,"e":597123456,"m":1,"o":-250,"p":"512.defgh...yza"}
//                                             whole length, then `.`, or `!` when it was published again ^
//                                             each other byte of the padding is the letter of its place in the payload
//
// Published again: a publisher that got no confirmation cannot know whether the message went out. A receiver that has it already is
// not to blame the gateway for the second one.

const ALPHABET = 'abcdefghijklmnopqrstuvwxyz'
const QUOTE = 0x22
const BRACE = 0x7b
const CLOSING_BRACE = 0x7d
const COLON = 0x3a
const DOT = 0x2e
const AGAIN = 0x21
const A = 0x61
const C = 0x63
const E = 0x65
const F = 0x66
const M = 0x6d
const O = 0x6f
const P = 0x70
const S = 0x73
const T = 0x74

/** Room for the longest numbers: what is shorter than this is no payload. */
const SHORTEST = 50
/** Places in the padding that are looked at. */
const LOOKS = 6

/**
 * @param {import('../../schema.js').Payload} numbers
 * @param {number} size bytes; a payload whose numbers need more is as long as it has to be
 * @param {boolean} again whether it may have been published before
 * @returns {string}
 */
export function makePayload({ t, s, c, e, m, o }, size, again) {
  const head = `{"t":${t},"s":${s},"c":${c},"e":${e},"m":${m},"o":${o},"p":"`
  const length = Math.max(size, head.length + 6)
  const start = `${head}${length}${again ? '!' : '.'}`
  const letters = ALPHABET.repeat(Math.ceil(length / 26))
  return `${start}${letters.slice(start.length, Math.max(start.length, length - 2))}"}`
}

/** Finds a payload in the bytes of a message. What it found last stands in its fields: one reader serves a whole process. */
export class PayloadReader {
  time = 0
  sequence = 0
  channel = 0
  start = 0
  machine = 0
  behind = 0
  again = false
  /** Where the bytes behind it begin. */
  end = 0
  #at = 0
  #fits = false

  /**
   * @param {Uint8Array} bytes
   * @param {number} from
   * @param {number} to
   * @returns {boolean} whether there is a whole one
   */
  read(bytes, from, to) {
    const at = find(bytes, from, to - SHORTEST)
    if (at < 0) return false
    this.#fits = true
    this.#at = at
    this.time = this.#number(bytes, T)
    this.sequence = this.#number(bytes, S)
    this.channel = this.#number(bytes, C)
    this.start = this.#number(bytes, E)
    this.machine = this.#number(bytes, M)
    this.behind = this.#number(bytes, O)
    const size = this.#number(bytes, P)
    const mark = this.#at
    this.again = bytes[mark] === AGAIN
    const end = (this.end = at + size)
    if (!this.#fits || (!this.again && bytes[mark] !== DOT) || end <= mark + 2 || end > to) return false
    if (bytes[end - 1] !== CLOSING_BRACE || bytes[end - 2] !== QUOTE) return false
    const step = Math.max(1, (end - mark - 3) >> 2)
    for (let i = end - 3, looks = LOOKS; i > mark && looks > 0; i -= step, looks--)
      if (bytes[i] !== A + ((i - at) % 26)) return false
    return true
  }

  /**
   * Reads `,"x":123` or `,"p":"123` at `#at`, and goes behind it.
   * @param {Uint8Array} bytes
   * @param {number} name that it has to have
   * @returns {number}
   */
  #number(bytes, name) {
    let i = this.#at
    if (bytes[i + 2] !== name || bytes[i + 4] !== COLON) this.#fits = false
    i += name === P ? 6 : 5
    const minus = bytes[i] === 0x2d
    if (minus) i++
    let value = 0
    for (let digit = bytes[i] - 48; digit >= 0 && digit <= 9; digit = bytes[++i] - 48)
      value = value * 10 + digit
    this.#at = i
    return minus ? -value : value
  }
}

/**
 * @param {Uint8Array} bytes
 * @param {number} from
 * @param {number} last the last place where it may begin
 * @returns {number} where the brace of `"data":{"t":` is, or -1
 */
function find(bytes, from, last) {
  for (let i = from + 3; i <= last; i++) {
    if (
      bytes[i] === BRACE &&
      bytes[i + 2] === T &&
      bytes[i + 4] === COLON &&
      bytes[i + 3] === QUOTE &&
      bytes[i + 1] === QUOTE &&
      bytes[i - 1] === COLON &&
      bytes[i - 3] === A
    )
      return i
  }
  return -1
}

/**
 * @param {Uint8Array} bytes
 * @param {number} from behind the payload
 * @param {number} to
 * @returns {number} the publication's offset in its stream; 0: it has none
 */
export function readOffset(bytes, from, to) {
  for (let i = from; i < to - 9; i++) {
    if (bytes[i] !== O || bytes[i - 1] !== QUOTE || bytes[i + 1] !== F || bytes[i + 7] !== COLON) continue
    let value = 0
    i += 8
    for (let digit = bytes[i] - 48; digit >= 0 && digit <= 9; digit = bytes[++i] - 48)
      value = value * 10 + digit
    return value
  }
  return 0
}
