import { isUtf8 } from 'node:buffer'
import { singleLine } from './raw-json.js'

/**
 * @typedef {object} Payload
 * @property {string | Buffer} data '' = none
 * @property {boolean} json or empty: valid for JSON clients
 * @property {boolean} object JSON
 * @property {boolean} [bytes] of a part: a JSON string that may also extend bytes
 */

const QUOTE = 0x22

/** @type {Payload} */
export const NO_PAYLOAD = Object.freeze({ data: '', json: true, object: false })

/** @param {string} text valid JSON */
const isObjectText = text => text.charCodeAt(0) === 0x7b || text.trimStart().startsWith('{')

/** @param {string} text valid JSON on one line @returns {Payload} */
export const textPayload = text => ({ data: text, json: true, object: isObjectText(text) })

/** @param {Buffer} bytes unchecked @returns {Payload} */
export function bytesPayload(bytes) {
  if (bytes.length === 0) return NO_PAYLOAD
  const text = jsonText(bytes)
  if (text === undefined) return { data: bytes, json: false, object: false }
  // Line feeds break the framing; in SSE, carriage returns too.
  const broken = bytes.includes(10) || bytes.includes(13)
  return { data: broken ? text : bytes, json: true, object: isObjectText(text) }
}

/** @param {string | Buffer | undefined} data of a command @returns {Payload} */
export function payloadOf(data) {
  if (data === undefined) return NO_PAYLOAD
  return typeof data === 'string' ? textPayload(data) : bytesPayload(data)
}

/**
 * A part to append to a JSON string or to bytes. The bytes of a Protobuf client may be a piece that happens to be JSON.
 * @param {string | Buffer | undefined} data @returns {Payload}
 */
export function partOf(data) {
  if (typeof data !== 'object' || data.length === 0) return payloadOf(data)
  const quoted = data[0] === QUOTE && data[data.length - 1] === QUOTE
  const json = quoted && jsonText(data) !== undefined
  return { data, json, object: false, bytes: json }
}

/** @param {Payload} payload @param {string} format of the channel */
export function fitsFormat(payload, format) {
  if (format === 'binary') return true
  if (format === 'json_object') return payload.object
  return payload.data.length > 0 && (format !== 'json' || payload.json)
}

/** JSON becomes text. @param {Payload} payload */
export const rawOf = ({ data, json }) => (json && typeof data !== 'string' ? data.toString() : data)

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/

/** @param {string} text padded; line breaks are skipped @returns {Buffer | undefined} undefined: not base64 */
export function decodeBase64(text) {
  const letters = text.includes('\n') || text.includes('\r') ? text.replace(/[\r\n]/g, '') : text
  if (letters.length % 4 !== 0 || !BASE64.test(letters)) return undefined
  return Buffer.from(letters, 'base64')
}

/** @param {Buffer} bytes @returns {string | undefined} JSON text on one line; undefined: not JSON */
function jsonText(bytes) {
  if (!isUtf8(bytes)) return undefined
  const text = bytes.toString()
  try {
    JSON.parse(text)
  } catch {
    return undefined
  }
  return singleLine(text)
}

/** Non-JSON bytes become a JSON string. @param {Buffer} bytes */
export const toJson = bytes => jsonText(bytes) ?? JSON.stringify(bytes.toString())
