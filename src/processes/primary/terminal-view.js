// The dashboard in the terminal of `npm start`. A separate process: drawing delays no message, and if either process
// fails, the other and the terminal survive.

import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { EXIT_CODES } from '../../base/dashboard-exit.js'

/** @import { Readable } from 'node:stream' */

/** Maximum wait for the guard of a killed dashboard, ms: output before the terminal is restored is lost. */
const GUARD_MS = 5000
/** Descriptor of a pipe of the dashboard and its guard: closes when both have exited. */
const GUARD_FD = 3
/** The dashboard is killed after this time, ms. */
const END_MS = 2000

const BIN = fileURLToPath(new URL('../../../bin/halley.js', import.meta.url))

/**
 * @typedef {{stop: boolean, fault: string}} ViewEnd `stop`: the user stopped the gateway; `fault`: of the dashboard, or
 *   ''
 */

/**
 * Shows the dashboard.
 * @param {string} socket path of the stats socket
 * @param {Record<string, string | undefined>} env
 * @param {(end: ViewEnd) => void} onEnd called when the terminal is free
 * @returns {() => Promise<void>} ends it; resolves when the terminal is free
 */
export function showDashboard(socket, env, onEnd) {
  // Without the Node.js flags of the gateway, which tune its heap.
  const child = spawn(process.execPath, [BIN, 'dashboard', socket, '--owner'], {
    stdio: ['inherit', 'inherit', 'inherit', 'pipe'],
    env: { ...env, HALLEY_GUARD_FD: String(GUARD_FD) },
  })
  const guard = /** @type {Readable} */ (child.stdio[GUARD_FD])
  guard?.on('error', () => {}).resume()
  let ended = false
  /** @type {Promise<void>} */
  const closed = new Promise(resolve => {
    const end = (/** @type {ViewEnd} */ how) => {
      if (ended) return
      ended = true
      resolve()
      onEnd(how)
    }
    child.once('error', error => end({ stop: false, fault: error.message }))
    child.once('exit', (code, signal) => {
      const requested = code === EXIT_CODES.quit || code === EXIT_CODES.stop
      const fault = requested ? '' : (signal ?? `exit code ${code}`)
      const over = () => end({ stop: code === EXIT_CODES.stop, fault })
      if (signal === null || guard.closed) return over()
      guard.once('close', over)
      setTimeout(over, GUARD_MS).unref()
    })
  })
  return async () => {
    if (!ended) child.kill('SIGTERM')
    const late = setTimeout(() => child.kill('SIGKILL'), END_MS)
    await closed
    clearTimeout(late)
  }
}
