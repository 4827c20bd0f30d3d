// Payloads of requests: `data` or `info` as JSON text, or the same in base64.

import { isUtf8 } from 'node:buffer'
import { errors } from '../errors.js'
import { singleLine } from '../protocol/raw-json.js'

/**
 * @typedef {object} Payload
 * @property {string | Buffer} data '' when there is none
 * @property {boolean} json whether it is a JSON text
 * @property {boolean} object whether it is the text of a JSON object
 */

/** @type {Payload} */
const NONE = Object.freeze({ data: '', json: false, object: false })

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/

/**
 * Standard base64 with padding; line breaks in it are skipped.
 * @param {string} text
 * @throws {import('../errors.js').ReplyError} 107
 */
function decodeBase64(text) {
  const letters = text.includes('\n') || text.includes('\r') ? text.replace(/[\r\n]/g, '') : text
  if (letters.length % 4 !== 0 || !BASE64.test(letters)) throw errors.badRequest
  return Buffer.from(letters, 'base64')
}

/**
 * @param {Buffer} bytes
 * @returns {string | undefined} the JSON text on one line; undefined if it is none
 */
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

/** @param {string} text a JSON text */
const isObjectText = text => text.charCodeAt(0) === 0x7b || text.trimStart().startsWith('{')

/**
 * @param {string} raw the JSON text of `data`, '' if absent
 * @param {string} base64 `b64data`, which wins unless it is empty
 * @returns {Payload}
 * @throws {import('../errors.js').ReplyError} 107
 */
export function readPayload(raw, base64) {
  if (base64 !== '') {
    const data = decodeBase64(base64)
    const text = jsonText(data)
    if (text === undefined) return { data, json: false, object: false }
    // The bytes go on as they are, unless a line feed in them would break the framing.
    return { data: data.includes(10) ? text : data, json: true, object: isObjectText(text) }
  }
  if (raw === '') return NONE
  return { data: raw, json: true, object: isObjectText(raw) }
}

/**
 * The same where only JSON can be passed on.
 * @param {string} raw
 * @param {string} base64
 * @returns {string} JSON text, '' if there is none
 * @throws {import('../errors.js').ReplyError} 107
 */
export function readJson(raw, base64) {
  if (base64 === '') return raw
  const text = jsonText(decodeBase64(base64))
  if (text === undefined) throw errors.badRequest
  return text
}

/**
 * @param {Payload} payload
 * @param {string} format of the channel's publications
 * @returns {boolean} whether the channel takes it
 */
export function fitsFormat(payload, format) {
  switch (format) {
    case 'binary':
      return true
    case 'json':
      return payload.json
    case 'json_object':
      return payload.object
    default:
      return payload.data.length > 0
  }
}
