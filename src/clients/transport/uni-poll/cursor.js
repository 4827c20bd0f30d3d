import { createHmac, hkdfSync } from 'node:crypto'
import { createSecretCheck } from '../../auth/secret.js'

/** @import { Config } from '../../../config/options.js' */

/** @typedef {{offset: number, epoch: string}} Position */

const VERSION = 1
const MAC_SIZE = 16
/** Size of each cache: many polls share a cursor and the next one. */
const REMEMBERED = 256

/**
 * A client's position in each channel. The signature prevents forged positions; any worker of any node accepts the
 * cursor. In base64url:
 *
 *   u8 version | for each channel: size, name, offset, size, epoch | 16 bytes of HMAC-SHA256
 *
 * Sizes and offsets are varints: 7 bits per byte, lowest first; the top bit is set if another byte follows.
 */
export class Cursors {
  #key
  #maxLength
  /** @type {Map<string, string>} content -> cursor */
  #written = new Map()
  /** @type {Map<string, Map<string, Position>>} valid cursor -> content */
  #read = new Map()

  /** @param {Buffer} key @param {number} maxLength of cursors from clients, characters */
  constructor(key, maxLength) {
    this.#key = key
    this.#maxLength = maxLength
  }

  /** Cursors signed with another key become invalid. @param {Buffer} key */
  setKey(key) {
    if (key.equals(this.#key)) return
    this.#key = key
    this.#written.clear()
    this.#read.clear()
  }

  /** @param {{name: string, offset: number, epoch: string}[]} positions @returns {string} */
  write(positions) {
    let content = ''
    for (const { name, offset, epoch } of positions) content += `${name}\0${offset}\0${epoch}\0`
    let cursor = this.#written.get(content)
    if (cursor === undefined) {
      const bytes = encode(positions)
      cursor = Buffer.concat([bytes, this.#mac(bytes)]).toString('base64url')
      remember(this.#written, content, cursor)
    }
    return cursor
  }

  /** @param {string} cursor from a client @returns {Map<string, Position> | null} by channel; null: invalid cursor */
  read(cursor) {
    // Its timing does not reveal signatures: the Map compares hashes first.
    const known = this.#read.get(cursor)
    if (known !== undefined) return known
    if (cursor.length > this.#maxLength) return null
    const bytes = Buffer.from(cursor, 'base64url')
    const size = bytes.length - MAC_SIZE
    // Rejects other base64url spellings of the same bytes.
    if (size < 1 || bytes.toString('base64url') !== cursor) return null
    const content = bytes.subarray(0, size)
    if (!createSecretCheck(this.#mac(content))(bytes.subarray(size)) || content[0] !== VERSION) return null
    const positions = decode(content)
    remember(this.#read, cursor, positions)
    return positions
  }

  /** @param {Buffer} content */
  #mac(content) {
    return createHmac('sha256', this.#key).update(content).digest().subarray(0, MAC_SIZE)
  }
}

/** @template T @param {Map<string, T>} memory @param {string} key @param {T} value */
function remember(memory, key, value) {
  if (memory.size >= REMEMBERED) memory.clear()
  memory.set(key, value)
}

/** @param {{name: string, offset: number, epoch: string}[]} positions @returns {Buffer} */
function encode(positions) {
  /** @type {number[]} */
  const bytes = [VERSION]
  for (const { name, offset, epoch } of positions) {
    writeText(bytes, name)
    writeNumber(bytes, offset)
    writeText(bytes, epoch)
  }
  return Buffer.from(bytes)
}

/** @param {number[]} bytes @param {number} number */
function writeNumber(bytes, number) {
  let rest = number
  // No bit operations: offsets may exceed 32 bits.
  for (; rest > 127; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128)
  bytes.push(rest)
}

/** @param {number[]} bytes @param {string} text */
function writeText(bytes, text) {
  const encoded = Buffer.from(text)
  writeNumber(bytes, encoded.length)
  for (const byte of encoded) bytes.push(byte)
}

/** @param {Buffer} content with a valid signature @returns {Map<string, Position>} */
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

/**
 * Nodes with the same configuration get the same key.
 * @param {Config} config @param {string} random used without a configured secret
 * @returns {string} base64 of 32 bytes
 */
export function deriveCursorKey({ uni_poll, client, http_api }, random) {
  const secret = uni_poll.cursor_secret_key || client.token.hmac_secret_key || http_api.key || random
  return Buffer.from(hkdfSync('sha256', secret, '', 'halley uni_poll cursor', 32)).toString('base64')
}
