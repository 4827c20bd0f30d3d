// The socket server of a worker: uws.js (uWebSockets.js) and node.js (node:http, ws) implement contract.js; this file
// selects one. Must not import other Halley modules.

import { loadUws } from './load-uws.js'
import { UwsServer } from './uws.js'

export { loadUws } from './load-uws.js'

/** @import { ServerTls } from './tls.js' */

/**
 * @typedef {object} Logger
 * @property {(details: object, message: string) => void} error
 * @property {(message: string) => void} warn
 * @property {(details: object, message: string) => void} untrusted for lines caused by clients
 */

/**
 * @param {object} options
 * @param {string} options.driver 'uws', 'node' or 'auto': uWebSockets.js if it loads, else node
 * @param {Logger} [options.logger]
 * @param {ServerTls | null} [options.tls] null: plain HTTP. Client certificates need node
 * @param {() => Promise<any>} [options.load] imports uWebSockets.js
 * @returns {Promise<import('./contract.js').SocketServer>}
 */
export async function createServer({ driver, logger, tls = null, load }) {
  let fallback = ''
  if (driver !== 'node' && (tls === null || tls.client_ca_pem === '')) {
    const { uws, why } = await loadUws(load)
    if (uws !== null) return new UwsServer(uws, { logger, tls })
    if (driver === 'uws') throw new Error(refused(why))
    logger?.warn(`uWebSockets.js does not load, using the slower node server: ${why}`)
    fallback = why
  }
  const { NodeServer } = await import('./node.js')
  return new NodeServer({ logger, tls, fallback })
}

/** @param {string} driver configured driver @throws {Error} if selected by name and not loadable */
export async function checkDriver(driver) {
  if (driver !== 'uws') return
  const { why } = await loadUws()
  if (why !== '') throw new Error(refused(why))
}

/** @param {string} why */
const refused = why => `http_server.driver is uws, but ${why}`
