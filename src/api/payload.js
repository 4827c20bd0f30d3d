// Payloads of requests: `data` or `info` as JSON text, or the same in base64.

import { errors } from '../errors.js'
import { decodeBase64, toJson } from '../protocol/base64.js'
import { bytesPayload, NO_PAYLOAD, textPayload } from '../protocol/payload.js'

/**
 * @param {string} base64
 * @throws {import('../errors.js').ReplyError} 107
 */
function decode(base64) {
  const bytes = decodeBase64(base64)
  if (bytes === undefined) throw errors.badRequest
  return bytes
}

/**
 * @param {string} raw the JSON text of `data`, '' if absent
 * @param {string} base64 `b64data`, which wins unless it is empty
 * @returns {import('../protocol/payload.js').Payload}
 * @throws {import('../errors.js').ReplyError} 107
 */
export function readPayload(raw, base64) {
  if (base64 !== '') return bytesPayload(decode(base64))
  return raw === '' ? NO_PAYLOAD : textPayload(raw)
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
