// The dashboard in the terminal of `npm start`. It is a separate process: drawing delays no message, and if either
// process fails, the other one and the terminal survive.

import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { EXIT_CODES } from '../../dashboard/exit-codes.js'

/** @import { ChildProcess } from 'node:child_process' */

/** The guard of a killed dashboard needs this long to restore the terminal; earlier output would be lost, ms. */
const GUARD_MS = 500
/** The dashboard is killed after this time, ms. */
const END_MS = 2000

const BIN = fileURLToPath(new URL('../../bin/halley.js', import.meta.url))

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
      stdio: 'inherit',
      env: this.#env,
    })
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
        const requested = code === EXIT_CODES.left || code === EXIT_CODES.stop
        const fault = requested ? '' : (signal ?? `exit code ${code}`)
        setTimeout(() => end({ stop: code === EXIT_CODES.stop, fault }), signal === null ? 0 : GUARD_MS)
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
