import * as crypto from 'node:crypto'

/** @typedef {string | Uint8Array} Text strings count as UTF-8 */

/**
 * `crypto.hash` takes half the time; Node.js has it from 20.12 on.
 * @type {(text: Text) => Buffer} SHA-256
 */
export const sha256 = crypto.hash
  ? text => crypto.hash('sha256', text, 'buffer')
  : text => crypto.createHash('sha256').update(text).digest()

/**
 * The one comparison of secrets: keys, passwords and signatures. It compares SHA-256 digests, so neither content nor
 * length of the secret shows in its time, and texts that differ in any byte are different.
 * @param {Text} secret '' equals nothing, not even ''
 * @returns {(given: Text) => boolean}
 */
export function createSecretCheck(secret) {
  if (secret.length === 0) return () => false
  const expected = sha256(secret)
  return given => crypto.timingSafeEqual(sha256(given), expected)
}
