import { once } from 'node:events'
import { createServer } from 'node:net'

/** @import { AddressInfo } from 'node:net' */

/**
 * Checks that the port is free, and resolves port 0, before workers start. Workers bind with SO_REUSEPORT: without
 * this check two gateways could share a port by mistake.
 * @param {string} address @param {number} port @returns {Promise<number>} @throws {Error} with address and reason
 */
export async function probe(address, port) {
  const host = address || '0.0.0.0'
  try {
    const server = createServer().listen({ host, port, exclusive: true })
    await once(server, 'listening')
    const { port: found } = /** @type {AddressInfo} */ (server.address())
    await once(server.close(), 'close')
    return found
  } catch (error) {
    throw new Error(`cannot listen on ${host}:${port}: ${error.code ?? error.message}`)
  }
}

/**
 * @param {{address: string, port: number, tls: {enabled: boolean}}} server `http_server` of the configuration
 * @returns {string} its URL
 */
export function urlOf({ address, port, tls }) {
  const host = address || '0.0.0.0'
  return `${tls.enabled ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`
}
