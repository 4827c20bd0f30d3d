import { createHash } from 'node:crypto'

/** Suites whose key is the run's secret: whoever has not got it completes no handshake, on either side. TLS 1.3 where both have it. */
export const CIPHERS = 'ECDHE-PSK-CHACHA20-POLY1305:DHE-PSK-AES256-GCM-SHA384:PSK-AES256-GCM-SHA384'

/** What a handshake may take, ms. */
export const HANDSHAKE = 10_000

/**
 * @param {string} secret 64 hex digits; anything else is hashed to as many bytes
 * @returns {Buffer} 32 bytes
 */
export const keyOf = secret =>
  /^[\da-f]{64}$/i.test(secret) ? Buffer.from(secret, 'hex') : createHash('sha256').update(secret).digest()

/**
 * @param {NodeJS.ErrnoException} error of a TLS socket
 * @returns {string} what it means for this line
 */
export function meaningOf({ code = '', message }) {
  if (/WRONG_VERSION|HTTP_REQUEST|UNKNOWN_PROTOCOL|PACKET_LENGTH|TLSV1_ALERT_PROTOCOL|NO_PROTOCOL/.test(code))
    return 'the other side speaks no TLS'
  if (/^ERR_SSL/.test(code)) return 'the other side has another secret, or is of another run'
  return /TLS_HANDSHAKE_TIMEOUT/.test(code) ? 'no handshake' : code || message
}
