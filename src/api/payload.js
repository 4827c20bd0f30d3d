// Payloads of requests: `data` or `info` as JSON text, or the same in base64.

import { errors } from '../errors.js'
import { decodeBase64, jsonText, toJson } from '../protocol/base64.js'

/**
 * @typedef {object} Payload
 * @property {string | Buffer} data '' when there is none
 * @property {boolean} json whether it is a JSON text
 * @property {boolean} object whether it is the text of a JSON object
 */

/** @type {Payload} */
const NONE = Object.freeze({ data: '', json: false, object: false })

/**
 * @param {string} base64
 * @throws {import('../errors.js').ReplyError} 107
 */
function decode(base64) {
  const bytes = decodeBase64(base64)
  if (bytes === undefined) throw errors.badRequest
  return bytes
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
    const data = decode(base64)
    const text = jsonText(data)
    if (text === undefined) return { data, json: false, object: false }
    // The bytes go on as they are, unless a line feed in them would break the framing.
    return { data: data.includes(10) ? text : data, json: true, object: isObjectText(text) }
  }
  if (raw === '') return NONE
  return { data: raw, json: true, object: isObjectText(raw) }
}

/**
 * The same where only JSON can be passed on: what is none becomes a JSON string.
 * @param {string} raw
 * @param {string} base64
 * @returns {string} JSON text, '' if there is none
 * @throws {import('../errors.js').ReplyError} 107
 */
export function readJson(raw, base64) {
  return base64 === '' ? raw : toJson(decode(base64))
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
