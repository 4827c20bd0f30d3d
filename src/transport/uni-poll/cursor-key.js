import { hkdfSync } from 'node:crypto'

const PURPOSE = 'halley uni_poll cursor'

/**
 * The key that signs cursors: the same on every node that has the same configuration.
 * @param {any} config as `loadConfig()` gives it
 * @param {string} random for a gateway that has no secret of its own
 * @returns {string} base64 of 32 bytes
 */
export function deriveCursorKey({ uni_poll, client, http_api }, random) {
  const secret = uni_poll.cursor_secret_key || client.token.hmac_secret_key || http_api.key || random
  return Buffer.from(hkdfSync('sha256', secret, '', PURPOSE, 32)).toString('base64')
}
