import * as crypto from 'node:crypto'

/** @typedef {string | Uint8Array} Text strings count as UTF-8 */

/**
 * `crypto.hash` takes half the time; Node.js has it from 20.12 on.
 * @type {(text: Text) => Buffer} SHA-256
 */
export const sha256 = crypto.hash
  ? text => crypto.hash('sha256', text, 'buffer')
  : text => crypto.createHash('sha256').update(text).digest()

/** Bytes of the longest text that is compared without a digest. */
const SHORT = 128

/** @param {Text} text */
const isShort = text => (typeof text === 'string' ? Buffer.byteLength(text) : text.length) <= SHORT

/**
 * Fills a block, of one size for all short texts: bytes, zeros, and the number of bytes.
 * @param {Buffer} block @param {Text} text
 */
function writeBlock(block, text) {
  block.fill(0)
  if (typeof text !== 'string') block.set(text)
  block[SHORT] = typeof text === 'string' ? block.write(text) : text.length
  return block
}

/**
 * The one comparison of secrets: keys, passwords and signatures. It compares blocks of one size, or SHA-256 digests,
 * which take three times as long, of a long secret. So neither content nor length of a secret shows in its time, and
 * texts that differ in any byte are different.
 * @param {Text} secret '' equals nothing, not even ''
 * @returns {(given: Text) => boolean}
 */
export function createSecretCheck(secret) {
  if (secret.length === 0) return () => false
  if (!isShort(secret)) {
    const expected = sha256(secret)
    return given => crypto.timingSafeEqual(sha256(given), expected)
  }
  const expected = writeBlock(Buffer.alloc(SHORT + 1), secret)
  const block = Buffer.alloc(SHORT + 1)
  return given => isShort(given) && crypto.timingSafeEqual(writeBlock(block, given), expected)
}
