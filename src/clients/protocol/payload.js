// Payloads with their known properties. In tokens and requests they are JSON text or base64.

import { isUtf8 } from 'node:buffer'
import { singleLine } from './raw-json.js'

/**
 * @typedef {object} Payload
 * @property {string | Buffer} data '' = none
 * @property {boolean} json JSON clients can receive it: JSON text, or empty, which omits the field
 * @property {boolean} object it is the text of a JSON object
 */

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
  // A line break would break the framing, in SSE a carriage return too. Other bytes pass unchanged.
  const broken = bytes.includes(10) || bytes.includes(13)
  return { data: broken ? text : bytes, json: true, object: isObjectText(text) }
}

/** @param {string | Buffer | undefined} data of a command: JSON text, or any bytes @returns {Payload} */
export function payloadOf(data) {
  if (data === undefined) return NO_PAYLOAD
  return typeof data === 'string' ? textPayload(data) : bytesPayload(data)
}

/** @param {Payload} payload @param {string} format of the channel's publications @returns {boolean} */
export function fitsFormat(payload, format) {
  switch (format) {
    case 'binary':
      return true
    case 'json':
      return payload.json && payload.data.length > 0
    case 'json_object':
      return payload.object
    default:
      return payload.data.length > 0
  }
}

/** @param {Payload} payload @returns {string | Buffer} JSON as text on one line; other bytes as they are */
export const rawOf = ({ data, json }) => (json && typeof data !== 'string' ? data.toString() : data)

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/

/**
 * @param {string} text standard alphabet, padded; line breaks are skipped
 * @returns {Buffer | undefined} undefined: not base64
 */
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

/** Bytes that are not JSON become a JSON string. @param {Buffer} bytes @returns {string} JSON text */
export const toJson = bytes => jsonText(bytes) ?? JSON.stringify(bytes.toString())
