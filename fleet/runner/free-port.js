import { createServer } from 'node:net'

/**
 * @param {string} [address]
 * @returns {Promise<number>} a port that nobody listens on. From below the ports that the system gives to outgoing connections: a
 *   run has so many of them that one might take it before the gateway does
 */
export async function freePort(address = '127.0.0.1') {
  for (let tries = 0; tries < 50; tries++) {
    const port = FIRST + Math.floor(Math.random() * (LAST - FIRST))
    if (await isFree(port, address)) return port
  }
  return 0
}

const FIRST = 12_000
const LAST = 31_000

/**
 * @param {number} port
 * @param {string} address
 * @returns {Promise<boolean>}
 */
const isFree = (port, address) =>
  new Promise(resolve => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, address, () => server.close(() => resolve(true)))
  })
