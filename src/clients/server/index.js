// The socket server of a worker: HTTP routes, WebSockets and streams. contract.js is its contract; uws.js
// (uWebSockets.js) and node.js (node:http, ws) implement it, and only this file chooses between them.
// May import nothing of Halley. static-files.js serves the files of the gateway's own pages over the contract.
// Promises: test/clients/server/conformance.js holds for both drivers; without uWebSockets.js, `auto` falls back to node.

import { loadUws } from './load-uws.js'
import { UwsServer } from './uws.js'

export { loadUws } from './load-uws.js'

/** @import { ServerTls } from './tls.js' */

/**
 * @typedef {object} Logger
 * @property {(details: object, message: string) => void} error
 * @property {(message: string) => void} warn
 * @property {(details: object, message: string) => void} stranger for lines that strangers can cause
 */

/**
 * @param {object} options
 * @param {string} options.driver 'uws', 'node' or 'auto': uWebSockets.js if it loads, else node
 * @param {Logger} [options.logger]
 * @param {ServerTls | null} [options.tls] null: plain HTTP. Client certificates take the node server: uWebSockets.js
 *   accepts clients without one
 * @param {() => Promise<any>} [options.load] loads uWebSockets.js
 * @returns {Promise<import('./contract.js').SocketServer>}
 * @throws {Error} one line
 */
export async function createServer({ driver, logger, tls = null, load }) {
  let fallback = ''
  if (driver !== 'node' && (tls === null || tls.client_ca_pem === '')) {
    const { uws, why } = await loadUws(load)
    if (uws !== null) return new UwsServer(uws, { logger, tls })
    if (driver === 'uws') throw new Error(refused(why))
    logger?.warn(`uWebSockets.js does not load, the slower node server is used instead: ${why}`)
    fallback = why
  }
  const { NodeServer } = await import('./node.js')
  return new NodeServer({ logger, tls, fallback })
}

/** @param {string} driver of the configuration @throws {Error} if it is chosen by name and does not load */
export async function checkDriver(driver) {
  if (driver !== 'uws') return
  const { why } = await loadUws()
  if (why !== '') throw new Error(refused(why))
}

/** @param {string} why */
const refused = why => `http_server.driver is uws, but ${why}`
