// On Node.js 24 and 25, uWebSockets.js sends strings without characters above U+00FF as Latin-1
// (uNetworking/uWebSockets.js#1280), so pass bytes. It copies them before returning.

import { STATUS_CODES } from 'node:http'

/** Maximum characters encoded in place, and maximum bytes per character. */
const MAX_IN_PLACE = 4096
const MAX_CHARACTER = 3
/** Maximum bytes of a cached array. */
const MAX_KEPT = 1024
/** Maximum characters for which a loop beats the encoder. */
const MAX_LOOP = 12

const encoder = new TextEncoder()

/** Encodes text as UTF-8 without allocation. A lone surrogate becomes U+FFFD. */
class InPlace {
  #space = new Uint8Array(MAX_IN_PLACE * MAX_CHARACTER)
  /** Views of `#space` by length. @type {Uint8Array[]} */
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

/** @param {string | Uint8Array} text @returns {Uint8Array} valid until the next call */
export const asBytes = text => (typeof text === 'string' ? data.encode(text) : text)
/** @param {string} topic */
export const topicBytes = topic => topics.encode(topic)
/** @param {string} key of a handshake */
export const keyBytes = key => keys.encode(key)

/** Bytes of a close reason (RFC 6455, section 5.5). */
const MAX_REASON = 123

/** Truncates between characters. @param {string} text @param {number} bytes */
export function cutText(text, bytes) {
  if (text.length * MAX_CHARACTER <= bytes || Buffer.byteLength(text) <= bytes) return text
  let end = Math.min(bytes, text.length)
  while (Buffer.byteLength(text.slice(0, end)) > bytes) end--
  const last = text.charCodeAt(end - 1)
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? end - 1 : end)
}

/** @param {string} reason */
export const closeReason = reason => cutText(reason, MAX_REASON)

const WIDE = /[^\0-\x7f]/
/** Header names (RFC 9110, section 5.1), and forbidden characters of values. */
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const CONTROL = /[\0-\x08\x0a-\x1f\x7f]/

/** Prevents header injection. @param {string} name @param {string} value @throws {Error} */
export function checkHeader(name, value) {
  if (!NAME.test(name)) throw new Error(`invalid header name: ${JSON.stringify(name)}`)
  if (CONTROL.test(value)) throw new Error(`invalid header value: ${JSON.stringify(value)}`)
}

/** One character per UTF-8 byte, as in node:http. @param {string} text */
export const inBytes = text => (WIDE.test(text) ? Buffer.from(text).toString('latin1') : text)

/** Reverses `inBytes`. @param {string} text */
export const fromBytes = text => (WIDE.test(text) ? Buffer.from(text, 'latin1').toString() : text)

/** @param {Record<string, string> | null} headers @returns {Record<string, string>} for node:http @throws {Error} */
export function headersInBytes(headers) {
  /** @type {Record<string, string>} */
  const encoded = {}
  for (const name in headers) {
    checkHeader(name, headers[name])
    encoded[name] = inBytes(headers[name])
  }
  return encoded
}

/** Limits, as clients choose some values, such as origins. */
const MAX_KEPT_TEXTS = 500
const MAX_KEPT_LENGTH = 500

class Kept {
  /** @type {Map<string, Uint8Array>} */
  #bytes = new Map()
  #check

  /** @param {(text: string) => void} check throws */
  constructor(check) {
    this.#check = check
  }

  /** @param {string} text */
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

/** Not checked: the configuration may contain invalid header names. */
const requested = new Kept(() => {})

/** @param {string} name */
export const nameBytes = name => requested.encode(name)

/** @param {string} value @throws {Error} if invalid in HTTP */
export const valueBytes = value => values.encode(value)

/** @type {Map<number, Uint8Array>} */
const statuses = new Map()

/** @param {number} status */
function statusBytes(status) {
  let bytes = statuses.get(status)
  if (bytes === undefined)
    statuses.set(status, (bytes = Buffer.from(`${status} ${STATUS_CODES[status] ?? 'Unknown'}`)))
  return bytes
}

/** @typedef {readonly Uint8Array[]} Head of a response: status, name, value, name, value ... */

/** @param {number} status @param {Record<string, string> | null} headers @returns {Head} @throws {Error} */
export function headBytes(status, headers) {
  const head = [statusBytes(status)]
  for (const name in headers) head.push(names.encode(name), values.encode(headers[name]))
  return head
}
