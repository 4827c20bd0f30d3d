// What is published: bytes, and what is known of them.

import { jsonText } from './base64.js'

/**
 * @typedef {object} Payload
 * @property {string | Buffer} data '' when there is none
 * @property {boolean} json whether JSON clients can be sent it: a JSON text, or nothing, which leaves out the field
 * @property {boolean} object whether it is the text of a JSON object
 */

/** @type {Payload} */
export const NO_PAYLOAD = Object.freeze({ data: '', json: true, object: false })

/** @param {string} text a JSON text */
const isObjectText = text => text.charCodeAt(0) === 0x7b || text.trimStart().startsWith('{')

/**
 * @param {string} text known to be JSON, on one line
 * @returns {Payload}
 */
export const textPayload = text => ({ data: text, json: true, object: isObjectText(text) })

/**
 * @param {Buffer} bytes of which nothing is known
 * @returns {Payload}
 */
export function bytesPayload(bytes) {
  if (bytes.length === 0) return NO_PAYLOAD
  const text = jsonText(bytes)
  if (text === undefined) return { data: bytes, json: false, object: false }
  // The bytes go on as they are, unless a line break in them would break the framing: to SSE a carriage return is one, too.
  const broken = bytes.includes(10) || bytes.includes(13)
  return { data: broken ? text : bytes, json: true, object: isObjectText(text) }
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
      return payload.json && payload.data.length > 0
    case 'json_object':
      return payload.object
    default:
      return payload.data.length > 0
  }
}
