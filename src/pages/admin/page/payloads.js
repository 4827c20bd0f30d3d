// Payloads of publications and of entries of maps, as texts.

import { plural } from '../../../base/format.js'

/** @typedef {{data?: any, b64data?: string}} Payload of a response */

/** Keeps the digits of numbers beyond double precision, if supported. @type {any} */
const keepDigits = (
  /** @type {string} */ _,
  /** @type {any} */ value,
  /** @type {any} */ { source } = {},
) => {
  const { rawJSON } = /** @type {any} */ (JSON)
  return typeof value === 'number' && rawJSON && source !== String(value) ? rawJSON(source) : value
}

/** @param {string} text JSON */
export const parseExactly = text => JSON.parse(text, keepDigits)

/** @param {string} base64 @returns {string} as text if it is one */
function bytesText(base64) {
  const bytes = Uint8Array.from(atob(base64), character => character.charCodeAt(0))
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
    if (!/[^\P{Control}\t\r\n]/u.test(text)) return `text: ${text}`
  } catch {}
  return `base64: ${base64}`
}

/** @param {Payload} payload @param {number} max characters @returns {string} bounded */
export function payloadText({ data, b64data }, max) {
  const text = b64data === undefined ? JSON.stringify(data ?? null) : bytesText(b64data)
  const more = text.length - max
  return more > 0 ? `${text.slice(0, max)} … ${plural(more, 'character')} more` : text
}

/**
 * A field for JSON.
 * @param {HTMLTextAreaElement} field @param {(fault: string) => void} show '': its content is JSON
 * @returns {() => boolean} checks it
 */
export function jsonField(field, show) {
  const check = () => {
    let fault = ''
    try {
      JSON.parse(field.value)
    } catch (error) {
      fault = /** @type {Error} */ (error).message
    }
    field.setAttribute('aria-invalid', String(fault !== ''))
    show(fault && `Invalid JSON: ${fault}`)
    return fault === ''
  }
  field.addEventListener('input', check)
  return check
}
