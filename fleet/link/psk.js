// TLS 1.3 whose key is the run's secret: whoever has not got it completes no handshake, on either side. There are no certificates.

/** What a handshake may take, ms. */
export const HANDSHAKE = 10_000

/**
 * @param {string} secret 64 hex digits
 * @returns {Buffer}
 */
export const keyOf = secret => Buffer.from(secret, 'hex')

/**
 * @param {NodeJS.ErrnoException} error of a TLS socket
 * @returns {string} what it means for this line
 */
export function meaningOf({ code = '', message }) {
  if (/ALERT|BINDER|SIGNATURE|CERT/.test(code)) return 'the other side has not the secret of this run'
  return /^ERR_SSL/.test(code) ? 'the other side speaks no TLS' : code || message
}
