// The TLS blocks of `http_server`, for the primary and its workers.

/** @import { Config } from './load.js' */

export const TLS_BLOCKS = /** @type {const} */ (['tls', 'internal_tls'])

/**
 * @param {any} server `http_server` of a loaded configuration
 * @returns {{clients: any, internal: any}} TLS block of each port; null: plain HTTP
 */
export function tlsOf({ tls, internal_tls: internal }) {
  const clients = tls.enabled ? tls : null
  return { clients, internal: internal.enabled ? internal : clients }
}

/**
 * TLS is switched on and off by a new start, so until then a port keeps the certificate that it has.
 * @param {Config} next of a reload @param {Config} now @returns {Config} `next`
 */
export function withTlsOf(next, now) {
  const server = { ...next.http_server }
  for (const block of TLS_BLOCKS) {
    const { enabled } = server[block]
    if (enabled !== now.http_server[block].enabled) server[block] = { ...now.http_server[block], enabled }
  }
  return { ...next, http_server: server }
}
