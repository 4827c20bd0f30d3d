// What the benchmarks publish: {"t":<microseconds>,"s":<sequence>,"p":"aaaa..."}, always exactly as long as was asked for.
// A subscriber finds it in whatever envelope the server puts around it by its first bytes, and needs no JSON.parse.
//
//   {"t":1234567890,"s":17,"p":"aaaaaaaa"}
//   ^ at            ^ numbers  ^ padding ^ at + size - 1: has to be the closing brace, else the message is damaged

/** Room for the longest numbers. */
export const MIN_SIZE = 64

const BRACE = 0x7b
const CLOSING_BRACE = 0x7d
const QUOTE = 0x22
const COLON = 0x3a
const T = 0x74

/** Makes payloads of one size. */
export class Payloads {
  #padding

  /** @param {number} size bytes */
  constructor(size) {
    this.size = size
    this.#padding = 'abcdefghijklmnopqrstuvwxyz'.repeat(Math.ceil(size / 26))
  }

  /**
   * @param {number} micros when it is sent
   * @param {number} sequence of its channel, from 1
   * @returns {string}
   */
  make(micros, sequence) {
    const head = `{"t":${micros},"s":${sequence},"p":"`
    return `${head}${this.#padding.slice(0, this.size - head.length - 2)}"}`
  }
}

/** Finds payloads in bytes. One reader serves a whole process: what it found last stands in its fields. */
export class PayloadReader {
  /** When the payload was sent, microseconds. */
  micros = 0
  sequence = 0
  /** Whether the payload was as long as it should be. */
  whole = false
  #size

  /** @param {number} size bytes of each payload */
  constructor(size) {
    this.#size = size
  }

  /**
   * @param {Uint8Array} bytes
   * @param {number} from
   * @param {number} end
   * @returns {number} where to look for the next one; -1: there is none
   */
  next(bytes, from, end) {
    const at = find(bytes, from, end - MIN_SIZE)
    if (at < 0) return -1
    let i = at + 5
    let value = 0
    for (let digit = bytes[i] - 48; digit >= 0 && digit <= 9; digit = bytes[++i] - 48)
      value = value * 10 + digit
    this.micros = value
    value = 0
    i += 5 // ,"s":
    for (let digit = bytes[i] - 48; digit >= 0 && digit <= 9; digit = bytes[++i] - 48)
      value = value * 10 + digit
    this.sequence = value
    const last = at + this.#size - 1
    this.whole = last < end && bytes[last] === CLOSING_BRACE
    return this.whole ? last + 1 : i
  }
}

/**
 * @param {Uint8Array} bytes
 * @param {number} from
 * @param {number} last the last place where one may begin
 * @returns {number} where a payload begins, or -1
 */
function find(bytes, from, last) {
  for (let i = from; i <= last; i++) {
    if (
      bytes[i] === BRACE &&
      bytes[i + 2] === T &&
      bytes[i + 1] === QUOTE &&
      bytes[i + 3] === QUOTE &&
      bytes[i + 4] === COLON
    )
      return i
  }
  return -1
}
