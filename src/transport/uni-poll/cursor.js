import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'

/**
 * @typedef {object} Position
 * @property {number} offset
 * @property {string} epoch
 */

const VERSION = 1
const MAC_SIZE = 16
/** Cursors that are remembered: a wave of polls comes with one cursor, and gets one. */
const REMEMBERED = 256

/**
 * Cursors: where a client stands in each of its channels, signed, so that any worker of any node can go on from there
 * and nobody can make up a place to read from. In base64url:
 *
 *   u8 version | for each channel: size, name, offset, size, epoch | 16 bytes of HMAC-SHA256
 *
 * Sizes and offsets take 7 bits a byte, the lowest first; the top bit says that another one follows.
 */
export class Cursors {
  #key
  #maxLength
  /** @type {Map<string, string>} what is in it -> cursor */
  #written = new Map()
  /** @type {Map<string, Map<string, Position>>} cursor, found good -> what is in it */
  #read = new Map()

  /**
   * @param {Buffer} key
   * @param {number} maxLength characters of a cursor that a client may send
   */
  constructor(key, maxLength) {
    this.#key = key
    this.#maxLength = maxLength
  }

  /**
   * @param {{name: string, offset: number, epoch: string}[]} places
   * @returns {string}
   */
  write(places) {
    let content = ''
    for (const { name, offset, epoch } of places) content += `${name}\0${offset}\0${epoch}\0`
    let cursor = this.#written.get(content)
    if (cursor === undefined) {
      cursor = this.#sign(encode(places))
      remember(this.#written, content, cursor)
    }
    return cursor
  }

  /**
   * @param {string} cursor as a client sent it
   * @returns {Map<string, Position> | null} by channel; null: no cursor of ours
   */
  read(cursor) {
    // Finding it here compares hashes first: how long that takes tells nothing of a signature.
    const known = this.#read.get(cursor)
    if (known !== undefined) return known
    if (cursor.length > this.#maxLength) return null
    const bytes = Buffer.from(cursor, 'base64url')
    const size = bytes.length - MAC_SIZE
    // Other letters may stand for the same bytes.
    if (size < 1 || bytes.toString('base64url') !== cursor) return null
    const content = bytes.subarray(0, size)
    if (!timingSafeEqual(bytes.subarray(size), this.#mac(content)) || content[0] !== VERSION) return null
    const positions = decode(content)
    remember(this.#read, cursor, positions)
    return positions
  }

  /** @param {Buffer} content */
  #mac(content) {
    return createHmac('sha256', this.#key).update(content).digest().subarray(0, MAC_SIZE)
  }

  /** @param {Buffer} content */
  #sign(content) {
    return Buffer.concat([content, this.#mac(content)]).toString('base64url')
  }
}

/**
 * @template T
 * @param {Map<string, T>} memory
 * @param {string} key
 * @param {T} value
 */
function remember(memory, key, value) {
  if (memory.size >= REMEMBERED) memory.clear()
  memory.set(key, value)
}

/**
 * @param {{name: string, offset: number, epoch: string}[]} places
 * @returns {Buffer}
 */
function encode(places) {
  /** @type {number[]} */
  const bytes = [VERSION]
  for (const { name, offset, epoch } of places) {
    writeText(bytes, name)
    writeNumber(bytes, offset)
    writeText(bytes, epoch)
  }
  return Buffer.from(bytes)
}

/**
 * @param {number[]} bytes
 * @param {number} number
 */
function writeNumber(bytes, number) {
  let rest = number
  // Offsets may have more bits than bit operations can deal with.
  for (; rest > 127; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128)
  bytes.push(rest)
}

/**
 * @param {number[]} bytes
 * @param {string} text
 */
function writeText(bytes, text) {
  const encoded = Buffer.from(text)
  writeNumber(bytes, encoded.length)
  for (const byte of encoded) bytes.push(byte)
}

/**
 * @param {Buffer} content which nobody else can have made
 * @returns {Map<string, Position>}
 */
function decode(content) {
  /** @type {Map<string, Position>} */
  const positions = new Map()
  let at = 1
  const number = () => {
    let value = 0
    let unit = 1
    for (;;) {
      const byte = content[at++]
      value += (byte & 127) * unit
      if (byte < 128) return value
      unit *= 128
    }
  }
  const text = () => {
    const size = number()
    return content.toString('utf8', at, (at += size))
  }
  while (at < content.length) positions.set(text(), { offset: number(), epoch: text() })
  return positions
}

const PURPOSE = 'halley uni_poll cursor'

/**
 * The key that signs cursors: the same on every node that has the same configuration.
 * @param {any} config as `loadConfig()` gives it
 * @param {string} random for a gateway that has no secret of its own
 * @returns {string} base64 of 32 bytes
 */
export function deriveCursorKey({ uni_poll, client, http_api }, random) {
  const secret = uni_poll.cursor_secret_key || client.token.hmac_secret_key || http_api.key || random
  return Buffer.from(hkdfSync('sha256', secret, '', PURPOSE, 32)).toString('base64')
}
