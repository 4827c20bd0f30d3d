// Ports reserved for one test, across processes.

import { once } from 'node:events'
import { createServer } from 'node:net'

/** Below the range of outgoing connections of Linux, above the ports that `fetch` refuses ("bad port", up to 10080). */
const FIRST_PORT = 10_100
const PORTS = 21_900
/** Step between the first ports of processes. */
const STEP = 20
let next = process.pid * STEP

/**
 * @param {string | number} place a port of loopback, or the name of a socket
 * @returns {Promise<import('node:net').Server | null>} null: in use
 */
const occupy = place =>
  new Promise(resolve => {
    const server = createServer()
    server.once('error', () => resolve(null))
    const listening = () => resolve(server)
    if (typeof place === 'string') server.listen(place, listening)
    else server.listen(place, '127.0.0.1', listening)
  })

/**
 * A free port is not enough: the server takes a second to start, may be killed and restarted, and gateways would even
 * share a port (SO_REUSEPORT). So this process reserves it with an abstract Unix socket of that name, which Linux
 * removes with the process.
 * @param {number} port @returns {Promise<boolean>} false: already reserved
 */
async function reserve(port) {
  if (process.platform !== 'linux') return true
  const server = await occupy(`\0halley-test-port-${port}`)
  server?.unref()
  return server !== null
}

/**
 * Listens on a free port of loopback until the end of the test.
 * @param {any} t @param {import('node:net').Server | import('node:http').Server} server
 * @returns {Promise<number>} port
 */
export async function listen(t, server) {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    server.close()
    if ('closeAllConnections' in server) server.closeAllConnections()
  })
  return /** @type {import('node:net').AddressInfo} */ (server.address()).port
}

/** @returns {Promise<number>} a free port, reserved for this process */
export async function freePort() {
  for (let tried = 0; tried < PORTS; tried++) {
    const port = FIRST_PORT + (next++ % PORTS)
    if (!(await reserve(port))) continue
    const server = await occupy(port)
    if (!server) continue
    await new Promise(resolve => server.close(resolve))
    return port
  }
  throw new Error(`no free port from ${FIRST_PORT} to ${FIRST_PORT + PORTS - 1}`)
}
