// Payloads in base64, as backends give them in tokens and to the server API.

import { isUtf8 } from 'node:buffer'
import { singleLine } from './raw-json.js'

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/

/**
 * @param {string} text standard alphabet, padded; line breaks in it are skipped
 * @returns {Buffer | undefined} undefined if it is no base64
 */
export function decodeBase64(text) {
  const letters = text.includes('\n') || text.includes('\r') ? text.replace(/[\r\n]/g, '') : text
  if (letters.length % 4 !== 0 || !BASE64.test(letters)) return undefined
  return Buffer.from(letters, 'base64')
}

/**
 * @param {Buffer} bytes
 * @returns {string | undefined} the JSON text on one line; undefined if they are none
 */
export function jsonText(bytes) {
  if (!isUtf8(bytes)) return undefined
  const text = bytes.toString()
  try {
    JSON.parse(text)
  } catch {
    return undefined
  }
  return singleLine(text)
}

/**
 * For places that only JSON fits in: what is none becomes a JSON string.
 * @param {Buffer} bytes
 * @returns {string} JSON text
 */
export const toJson = bytes => jsonText(bytes) ?? JSON.stringify(bytes.toString())
