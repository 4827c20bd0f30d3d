import { once } from 'node:events'
import { createServer } from 'node:net'
import { portOwner } from './port-owner.js'

/** @import { AddressInfo } from 'node:net' */

/**
 * Why a port cannot be listened on, and what to do.
 * @param {NodeJS.ErrnoException} error @param {number} port @param {string} key option of the port
 */
async function hint({ code }, port, key) {
  if (code === 'EADDRINUSE') {
    const owner = await portOwner(port)
    const cure =
      key === 'http_server.port'
        ? '`npm run dashboard` shows a gateway that is running already, --port or http_server.port sets another port'
        : `${key} sets another port`
    return `: the port is taken${owner === '' ? '' : ` by ${owner}`}; ${cure}`
  }
  if (code === 'EACCES') return `: a port below 1024 needs a privilege; ${key} sets another one`
  return code === 'EADDRNOTAVAIL' ? ': the address is not one of this machine' : ''
}

/**
 * Checks that the port is free, and resolves port 0, before workers start. Workers bind with SO_REUSEPORT: without
 * this check two gateways could share a port by mistake.
 * @param {string} address @param {number} port @param {string} [key] its option
 * @returns {Promise<number>} @throws {Error} with address, reason and what to do
 */
export async function probe(address, port, key = 'http_server.port') {
  const host = address || '0.0.0.0'
  try {
    const server = createServer().listen({ host, port, exclusive: true })
    await once(server, 'listening')
    const { port: found } = /** @type {AddressInfo} */ (server.address())
    await once(server.close(), 'close')
    return found
  } catch (error) {
    throw new Error(
      `cannot listen on ${host}:${port}: ${error.code ?? error.message}${await hint(error, port, key)}`,
    )
  }
}

/**
 * Checks the ports of a gateway.
 * @param {any} server `http_server` of the configuration @returns {Promise<number>} the public one @throws {Error}
 */
export async function probePorts({ address, port, internal_address, internal_port }) {
  const found = await probe(address, port)
  if (internal_port !== 0)
    await probe(internal_address || address, internal_port, 'http_server.internal_port')
  return found
}

/**
 * @param {{address: string, port: number, tls: {enabled: boolean}}} server `http_server` of the configuration
 * @returns {string} its URL
 */
export function urlOf({ address, port, tls }) {
  const host = address || '0.0.0.0'
  return `${tls.enabled ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`
}
