// The dashboard in the terminal of `npm start`: a process of its own, so that drawing disturbs no message, and so that neither of the two
// takes the other one, or the terminal, with it when it fails.

import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { EXIT_CODES } from '../../dashboard/exit-codes.js'

/** What is written before the guard of a killed dashboard has given the terminal back would be lost with its screen, ms. */
const GUARD_MS = 500
/** So long a dashboard that was asked to end may take for it, ms. */
const END_MS = 2000

const BIN = fileURLToPath(new URL('../../bin/halley.js', import.meta.url))

export class TerminalView {
  #socket
  #env
  #onEnd
  /** @type {import('node:child_process').ChildProcess | null} */
  #child = null
  /** @type {Promise<void>} */
  #gone = Promise.resolve()

  /**
   * @param {string} socket path of the stats socket
   * @param {Record<string, string | undefined>} env
   * @param {(end: {stop: boolean, fault: string}) => void} onEnd the terminal is free again. `stop`: the person wants the gateway to end;
   *   `fault`: why the dashboard ended, if nobody asked it to
   */
  constructor(socket, env, onEnd) {
    this.#socket = socket
    this.#env = env
    this.#onEnd = onEnd
  }

  start() {
    // Flags of the gateway's own Node.js are about its heap, not about a small program's.
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
        const asked = code === EXIT_CODES.left || code === EXIT_CODES.stop
        const fault = asked ? '' : (signal ?? `exit code ${code}`)
        setTimeout(() => end({ stop: code === EXIT_CODES.stop, fault }), signal === null ? 0 : GUARD_MS)
      })
    })
  }

  /** @returns {Promise<void>} when the terminal is free */
  end() {
    const child = this.#child
    if (child === null) return this.#gone
    child.kill('SIGTERM')
    // One that hangs does not hear that.
    const late = setTimeout(() => child.kill('SIGKILL'), END_MS)
    return this.#gone.then(() => clearTimeout(late))
  }
}
