// The dashboard in the terminal of `npm start`. It is a separate process: drawing delays no message, and if either
// process fails, the other one and the terminal survive.

import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { EXIT_CODES } from '../../base/dashboard-exit.js'

/** @import { ChildProcess } from 'node:child_process' */
/** @import { Readable } from 'node:stream' */

/** Maximum time to wait for the guard of a killed dashboard, ms: output before it has restored the terminal is lost. */
const GUARD_MS = 5000
/** File descriptor of a pipe that the dashboard and its guard hold: it ends when both have ended. */
const GUARD_FD = 3
/** The dashboard is killed after this time, ms. */
const END_MS = 2000

const BIN = fileURLToPath(new URL('../../../bin/halley.js', import.meta.url))

export class TerminalView {
  #socket
  #env
  #onEnd
  /** @type {ChildProcess | null} */
  #child = null
  /** @type {Promise<void>} */
  #gone = Promise.resolve()

  /**
   * @param {string} socket path of the stats socket
   * @param {Record<string, string | undefined>} env
   * @param {(end: {stop: boolean, fault: string}) => void} onEnd called when the terminal is free. `stop`: the user
   *   stopped the gateway; `fault`: why the dashboard failed, or empty
   */
  constructor(socket, env, onEnd) {
    this.#socket = socket
    this.#env = env
    this.#onEnd = onEnd
  }

  start() {
    // Not with the gateway's Node.js flags: they tune its heap.
    const child = spawn(process.execPath, [BIN, 'dashboard', this.#socket, '--owner'], {
      stdio: ['inherit', 'inherit', 'inherit', 'pipe'],
      env: { ...this.#env, HALLEY_GUARD_FD: String(GUARD_FD) },
    })
    const guard = /** @type {Readable} */ (child.stdio[GUARD_FD])
    guard?.on('error', () => {}).resume()
    this.#child = child
    this.#gone = new Promise(resolve => {
      const end = (/** @type {{stop: boolean, fault: string}} */ how) => {
        if (this.#child === null) return
        this.#child = null
        resolve()
        this.#onEnd(how)
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
  }

  /** @returns {Promise<void>} when the terminal is free */
  end() {
    const child = this.#child
    if (child === null) return this.#gone
    child.kill('SIGTERM')
    const late = setTimeout(() => child.kill('SIGKILL'), END_MS)
    return this.#gone.then(() => clearTimeout(late))
  }
}
