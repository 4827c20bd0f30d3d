// Ports for what a test starts: no other test gets them, neither of this process nor of another one.

import { createServer } from 'node:net'

/**
 * Below the ports that Linux gives to outgoing connections: one of those might sit on the port of a server that is
 * away for a moment. Above 10080, the highest port that `fetch` and browsers refuse ("bad port",
 * https://fetch.spec.whatwg.org/#port-blocking).
 */
const FIRST_PORT = 10_100
const PORTS = 21_900
/** Processes begin at ports that far from each other. */
const STEP = 20
let next = process.pid * STEP

/**
 * @param {string | number} place a port of loopback, or the name of a socket
 * @returns {Promise<import('node:net').Server | null>} null: somebody listens there
 */
const listen = place =>
  new Promise(resolve => {
    const server = createServer()
    server.once('error', () => resolve(null))
    const listening = () => resolve(server)
    if (typeof place === 'string') server.listen(place, listening)
    else server.listen(place, '127.0.0.1', listening)
  })

/**
 * That nobody listens on a port is not enough: what will listen there needs a second to start, and may be killed and
 * started again. So a port belongs to the test's process for as long as it lives: it has a socket with the port in
 * its name, which Linux removes with the process. Gateways would even share a port without a word (SO_REUSEPORT).
 * @param {number} port
 * @returns {Promise<boolean>} false: another process has it
 */
async function reserve(port) {
  if (process.platform !== 'linux') return true
  const server = await listen(`\0halley-test-port-${port}`)
  server?.unref()
  return server !== null
}

/** @returns {Promise<number>} a port that nobody listens on, and that this process has to itself */
export async function freePort() {
  for (let tried = 0; tried < PORTS; tried++) {
    const port = FIRST_PORT + (next++ % PORTS)
    if (!(await reserve(port))) continue
    const server = await listen(port)
    if (!server) continue
    await new Promise(resolve => server.close(resolve))
    return port
  }
  throw new Error(`no free port from ${FIRST_PORT} to ${FIRST_PORT + PORTS - 1}`)
}
