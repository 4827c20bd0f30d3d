// `halley-gateway/hooks`: what a hooks module imports (docs/hooks.md).

import { Disconnect, ReplyError } from '../../base/errors.js'
import { REFUSAL } from '../../clients/hooks/contract.js'

/** Codes that SDKs know as close codes of the application; 3000 to 3999 are those of the protocol. */
const MIN_CODE = 3000
const MAX_CODE = 4999
/** Of a close frame. */
const MAX_REASON_BYTES = 123

/**
 * The application may have another copy of this package than the gateway.
 * @template {Error} T
 * @param {T} error @returns {T}
 */
const marked = error => Object.assign(error, { [REFUSAL]: true })

/**
 * Refuses what the client asked for: `throw reject(4000, 'closed today')`. The client goes on.
 * @param {number} code whole, from 0 to 4294967295; use 400 to 1999 or 4000 to 4999 for your own
 * @param {string} message for the client
 * @param {{temporary?: boolean}} [options] `temporary`: the SDK tries again
 * @returns {Error}
 */
export function reject(code, message, { temporary = false } = {}) {
  if (!Number.isInteger(code) || code < 0 || code > 0xffffffff)
    throw new TypeError(`reject: code ${code} is not a whole number from 0 to 4294967295`)
  return marked(new ReplyError(code, String(message), temporary))
}

/**
 * Ends the connection: `throw disconnect(4500, 'banned')`. SDKs reconnect, unless the code is 3500 to 3999 or 4500 to
 * 4999.
 * @param {number} code 3000 to 4999; use 4000 and more for your own
 * @param {string} reason at most 123 bytes
 * @returns {Error}
 */
export function disconnect(code, reason) {
  if (!Number.isInteger(code) || code < MIN_CODE || code > MAX_CODE)
    throw new TypeError(`disconnect: code ${code} is not a whole number from ${MIN_CODE} to ${MAX_CODE}`)
  if (typeof reason !== 'string' || reason === '' || Buffer.byteLength(reason) > MAX_REASON_BYTES)
    throw new TypeError(`disconnect: the reason must be a text of 1 to ${MAX_REASON_BYTES} bytes`)
  return marked(new Disconnect(code, reason))
}

/**
 * Returns the handlers as they are; editors and TypeScript know their types: `export default defineHooks({ ... })`.
 * @param {import('./types.js').Hooks} hooks
 * @returns {import('./types.js').Hooks}
 */
export const defineHooks = hooks => hooks
