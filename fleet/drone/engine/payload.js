// Payloads: Payload in schema.js explains the numbers. The padding starts with the payload's length, and the place of
// each letter determines it, so that receivers detect incomplete payloads:
//
//   {"t":1795267980383811,"s":17,"c":3735928559,"e":597123456,"m":1,"o":-250,"p":"512.defgh...yza"}
//                                                                                 ^ length of the payload, then `.`,
//                                                                                   or `!` if published again
//
// Byte i of the payload, if it is a letter of the padding, is letter i mod 26 of the alphabet. The receiver does not
// count a second copy with `!` as a duplicate made by the gateway.

import { deflateSync, inflateSync } from 'node:zlib'
import { parseTemplate } from '../../channel-template.js'

const ALPHABET = 'abcdefghijklmnopqrstuvwxyz'
/** Checked letters of the padding, evenly spaced. */
const CHECKED_LETTERS = 6
const MIN_LENGTH = 50

const QUOTE = 0x22
const COMMA = 0x2c
const MINUS = 0x2d
const POINT = 0x2e
const BANG = 0x21
const COLON = 0x3a
const BRACE = 0x7b
const CLOSING_BRACE = 0x7d
const A = 0x61
const ZERO = 0x30
const [T, S, C, E, M, O, P, U, H] = [...'tscemopuh'].map(letter => letter.charCodeAt(0))
const OFFSET_KEY = '"offset":'

/** @param {import('../../schema.js').Payload} numbers @param {number} size minimum bytes @param {boolean} again */
export function makePayload({ t, s, c, e, m, o }, size, again) {
  const head = `{"t":${t},"s":${s},"c":${c},"e":${e},"m":${m},"o":${o},"p":"`
  const length = Math.max(size, head.length + 6)
  const start = `${head}${length}${again ? '!' : '.'}`
  const letters = ALPHABET.repeat(Math.ceil(length / 26))
  return `${start}${letters.slice(start.length, Math.max(start.length, length - 2))}"}`
}

/** Finds payloads without parsing the JSON around them. Its fields hold the last result: no allocation per message. */
export class PayloadReader {
  t = 0
  s = 0
  c = 0
  e = 0
  m = 0
  o = 0
  again = false
  /** Position of the publication in the channel's stream; 0: none. */
  offset = 0
  #at = 0

  /** False: no complete payload. @param {Buffer} bytes of one publication @param {number} from @param {number} to */
  read(bytes, from, to) {
    const at = find(bytes, from, to - MIN_LENGTH)
    if (at < 0) return false
    this.#at = at
    this.t = this.#number(bytes, T)
    this.s = this.#number(bytes, S)
    this.c = this.#number(bytes, C)
    this.e = this.#number(bytes, E)
    this.m = this.#number(bytes, M)
    this.o = this.#number(bytes, O)
    // A missing number ends the search: `,"p":"` is not at the expected place.
    let mark = this.#at
    if (mark < 0 || bytes[mark] !== COMMA || bytes[mark + 2] !== P || bytes[mark + 5] !== QUOTE) return false
    mark += 6
    let length = 0
    for (let digit = bytes[mark] - ZERO; digit >= 0 && digit <= 9; digit = bytes[++mark] - ZERO)
      length = length * 10 + digit
    if (bytes[mark] !== POINT && bytes[mark] !== BANG) return false
    const end = at + length
    if (end <= mark + 2 || end > to || bytes[end - 2] !== QUOTE || bytes[end - 1] !== CLOSING_BRACE)
      return false
    // The last letter, and others at equal distances before it.
    const step = Math.max(1, (end - mark - 3) >> 2)
    for (let i = end - 3, checks = CHECKED_LETTERS; i > mark && checks > 0; i -= step, checks--)
      if (bytes[i] !== A + ((i - at) % 26)) return false
    this.again = bytes[mark] === BANG
    this.offset = offsetAfter(bytes, end, to)
    return true
  }

  /** Reads `{"t":17` or `,"t":17`. @param {Uint8Array} bytes @param {number} key letter */
  #number(bytes, key) {
    let at = this.#at
    if (at < 0 || bytes[at + 2] !== key || bytes[at + 4] !== COLON) {
      this.#at = -1
      return 0
    }
    at += 5
    const negative = bytes[at] === MINUS
    if (negative) at++
    const first = at
    let value = 0
    for (let digit = bytes[at] - ZERO; digit >= 0 && digit <= 9; digit = bytes[++at] - ZERO)
      value = value * 10 + digit
    this.#at = at === first ? -1 : at
    return negative ? -value : value
  }
}

/** Start of a payload; -1: none. @param {Uint8Array} bytes @param {number} from @param {number} last start */
function find(bytes, from, last) {
  // The letter first: quotes are frequent.
  for (let i = from; i <= last; i++)
    if (
      bytes[i] === BRACE &&
      bytes[i + 2] === T &&
      bytes[i + 1] === QUOTE &&
      bytes[i + 3] === QUOTE &&
      bytes[i + 4] === COLON
    )
      return i
  return -1
}

/** @param {Buffer} bytes @param {number} from @param {number} to @returns {number} the publication's offset; 0: none */
function offsetAfter(bytes, from, to) {
  for (let i = from; i < to - OFFSET_KEY.length; i++) {
    if (
      bytes[i] !== QUOTE ||
      bytes[i + 1] !== O ||
      bytes.toString('latin1', i, i + OFFSET_KEY.length) !== OFFSET_KEY
    )
      continue
    let at = i + OFFSET_KEY.length
    let value = 0
    for (let digit = bytes[at] - ZERO; digit >= 0 && digit <= 9; digit = bytes[++at] - ZERO)
      value = value * 10 + digit
    return value
  }
  return 0
}

/** Starts like a push, or is not JSON: a push of a control. @param {Uint8Array} bytes @param {number} at start */
export const isPush = (bytes, at) =>
  bytes[at] !== BRACE ||
  (bytes[at + 2] === P && bytes[at + 3] === U) ||
  (bytes[at + 2] === C && bytes[at + 3] === H)

const YEAR_2025 = 1_735_689_600_000

/** The `e` of a publisher's payloads: tenths of a second since 2025. @param {number} time Unix ms */
export const startNumber = time => Math.max(1, (time - YEAR_2025) / 100) >>> 0

/** @param {Uint32Array<ArrayBuffer>} sequences @returns {string} for a ledger */
export const packSequences = sequences => deflateSync(Buffer.from(sequences.buffer)).toString('base64')

/**
 * @param {import('../../schema.js').Ledger} ledger @throws {Error} invalid sequences
 * @returns {(name: string) => number} last sequence of a channel; 0: nothing published, or not in this ledger
 */
export function readLedger({ channels, part, parts, sequences }) {
  const template = parseTemplate(channels)
  const bytes = inflateSync(Buffer.from(sequences, 'base64'))
  const last = new Uint32Array(Uint8Array.from(bytes).buffer)
  return name => {
    // A channel of another part gives a fraction, not an index.
    const at = (template.indexOf(name) - part) / parts
    return last[at] ?? 0
  }
}
