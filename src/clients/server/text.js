// Text at the boundary to the libraries of the socket servers.
//
// uWebSockets.js also takes strings. On Node.js 24 and 25 it sends one without characters above U+00FF as Latin-1, any
// other as UTF-8 (uNetworking/uWebSockets.js#1280). So it gets bytes only, from the functions below; test/style.test.js
// holds that. It copies them before its call returns.

import { STATUS_CODES } from 'node:http'

/** Characters of the longest text that is encoded in place, and bytes of one character at most. */
const MAX_IN_PLACE = 4096
const MAX_CHARACTER = 3
/** Bytes of the longest text whose array is kept. */
const MAX_KEPT = 1024
/** Characters up to which a loop is faster than a call of the encoder. */
const MAX_LOOP = 12

const encoder = new TextEncoder()

/** Encodes text as UTF-8 without an allocation. Half a surrogate pair becomes U+FFFD. */
class InPlace {
  #space = new Uint8Array(MAX_IN_PLACE * MAX_CHARACTER)
  /** @type {Uint8Array[]} views of `#space`, by their length */
  #views = []

  /** @param {string} text @returns {Uint8Array} valid until the next call */
  encode(text) {
    const { length } = text
    if (length > MAX_IN_PLACE) return Buffer.from(text)
    if (length > MAX_LOOP) return this.#view(encoder.encodeInto(text, this.#space).written)
    for (let i = 0; i < length; i++) {
      const code = text.charCodeAt(i)
      if (code > 0x7f) return this.#view(encoder.encodeInto(text, this.#space).written)
      this.#space[i] = code
    }
    return this.#view(length)
  }

  /** @param {number} length */
  #view(length) {
    if (length > MAX_KEPT) return this.#space.subarray(0, length)
    return (this.#views[length] ??= this.#space.subarray(0, length))
  }
}

const data = new InPlace()
const topics = new InPlace()
const keys = new InPlace()

/**
 * @param {string | Uint8Array} text
 * @returns {Uint8Array} UTF-8, for one call of the library: the next call of this function may overwrite it
 */
export const asBytes = text => (typeof text === 'string' ? data.encode(text) : text)

/** @param {string} topic @returns {Uint8Array} like `asBytes`, which it does not overwrite */
export const topicBytes = topic => topics.encode(topic)

/** @param {string} key of a handshake @returns {Uint8Array} like `asBytes`, which it does not overwrite */
export const keyBytes = key => keys.encode(key)

/** Bytes of a close reason (RFC 6455, section 5.5). */
const MAX_REASON = 123

/** @param {string} text @param {number} bytes @returns {string} its beginning, cut between two characters */
export function cutText(text, bytes) {
  if (text.length * MAX_CHARACTER <= bytes || Buffer.byteLength(text) <= bytes) return text
  let end = Math.min(bytes, text.length)
  while (Buffer.byteLength(text.slice(0, end)) > bytes) end--
  const last = text.charCodeAt(end - 1)
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? end - 1 : end)
}

/** @param {string} reason @returns {string} of a close frame */
export const closeReason = reason => cutText(reason, MAX_REASON)

/** Beyond ASCII. */
const WIDE = /[^\0-\x7f]/
/** A header's name (RFC 9110, section 5.1), and what its value must not contain. */
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const CONTROL = /[\0-\x08\x0a-\x1f\x7f]/

/**
 * @param {string} name of a header @param {string} value
 * @throws {Error} if HTTP cannot carry it: a line break in it would begin another header or the body
 */
export function checkHeader(name, value) {
  if (!NAME.test(name)) throw new Error(`invalid name of a header: ${JSON.stringify(name)}`)
  if (CONTROL.test(value)) throw new Error(`invalid value of a header: ${JSON.stringify(value)}`)
}

/** @param {string} text @returns {string} a character for each byte of its UTF-8, as node:http reads and sends headers */
export const inBytes = text => (WIDE.test(text) ? Buffer.from(text).toString('latin1') : text)

/** @param {string} text that has a character for each byte @returns {string} decoded as UTF-8 */
export const fromBytes = text => (WIDE.test(text) ? Buffer.from(text, 'latin1').toString() : text)

/**
 * @param {Record<string, string> | null} headers of an answer
 * @returns {Record<string, string>} for node:http
 * @throws {Error} for a header that HTTP cannot carry
 */
export function headersInBytes(headers) {
  /** @type {Record<string, string>} */
  const encoded = {}
  for (const name in headers) {
    checkHeader(name, headers[name])
    encoded[name] = inBytes(headers[name])
  }
  return encoded
}

/** Bytes of headers and statuses are kept for this many short texts: clients choose some values, such as origins. */
const MAX_KEPT_TEXTS = 500
const MAX_KEPT_LENGTH = 500

/** Texts that are encoded often. */
class Kept {
  /** @type {Map<string, Uint8Array>} */
  #bytes = new Map()
  #check

  /** @param {(text: string) => void} check throws; called before a text is encoded */
  constructor(check) {
    this.#check = check
  }

  /** @param {string} text @returns {Uint8Array} UTF-8 */
  encode(text) {
    const kept = this.#bytes.get(text)
    if (kept !== undefined) return kept
    this.#check(text)
    const bytes = Buffer.from(text)
    if (text.length > MAX_KEPT_LENGTH) return bytes
    if (this.#bytes.size === MAX_KEPT_TEXTS) this.#bytes.clear()
    this.#bytes.set(text, bytes)
    return bytes
  }
}

const names = new Kept(name => checkHeader(name, ''))
const values = new Kept(value => checkHeader('X', value))

/** Not checked: the configuration may name a header that no request can have. */
const requested = new Kept(() => {})

/** @param {string} name of a header to read @returns {Uint8Array} */
export const nameBytes = name => requested.encode(name)

/** @param {string} value of a header, such as a subprotocol @returns {Uint8Array} @throws {Error} if HTTP cannot carry it */
export const valueBytes = value => values.encode(value)

/** @type {Map<number, Uint8Array>} */
const statuses = new Map()

/** @param {number} status @returns {Uint8Array} */
function statusBytes(status) {
  let bytes = statuses.get(status)
  if (bytes === undefined)
    statuses.set(status, (bytes = Buffer.from(`${status} ${STATUS_CODES[status] ?? 'Unknown'}`)))
  return bytes
}

/** @typedef {readonly Uint8Array[]} Head of an answer: status, name, value, name, value ... */

/**
 * @param {number} status @param {Record<string, string> | null} headers
 * @returns {Head}
 * @throws {Error} for a header that HTTP cannot carry
 */
export function headBytes(status, headers) {
  const head = [statusBytes(status)]
  for (const name in headers) head.push(names.encode(name), values.encode(headers[name]))
  return head
}
