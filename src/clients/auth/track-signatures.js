import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { errors } from '../../base/errors.js'

/** @import { Config } from '../../config/options.js' */

/** How long an expired signature is still accepted, s. */
const GRACE = 5
/** Times of issue and expiry (unix s), HMAC-SHA256. */
const FORM = /^(\d{1,15}):(\d{1,15}):([0-9a-f]{64})$/

/** @param {string} secret @param {string} text */
const hmac = (secret, text) => createHmac('sha256', secret).update(text).digest()

/**
 * Checks the signature of a backend for keys of a shared poll: `<iat>:<exp>:<hex>`, see docs/shared-poll.md.
 * @param {Config['shared_poll']} options @param {number} now unix s
 * @param {{user: string, channel: string, keys: string[], signature: string}} signed
 * @returns {number} when it expires, unix s; 0 = never
 * @throws {Error} errors.internal: no secret is configured; errors.permissionDenied: of something else;
 *   errors.tokenExpired
 */
export function checkTrackSignature(options, now, { user, channel, keys, signature }) {
  const { hmac_secret_key: secret, hmac_previous_secret_key: previous } = options
  if (secret === '') throw errors.internal
  const [, issued, expires, hex] = FORM.exec(signature) ?? []
  if (hex === undefined) throw errors.permissionDenied
  const digest = createHash('sha256').update(keys.join('\0')).digest('hex')
  const text = [issued, expires, user, channel, digest].join('\0')
  const given = Buffer.from(hex, 'hex')
  const isOf = (/** @type {string} */ key) => timingSafeEqual(hmac(key, text), given)
  const validUntil = options.hmac_previous_secret_key_valid_until
  const mayBePrevious = previous !== '' && (validUntil <= 0 || Number(issued) <= validUntil)
  if (!isOf(secret) && !(mayBePrevious && isOf(previous))) throw errors.permissionDenied
  const expireAt = Number(expires)
  if (expireAt > 0 && now > expireAt + GRACE) throw errors.tokenExpired
  return expireAt
}
