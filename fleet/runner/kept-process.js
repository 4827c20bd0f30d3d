import { spawn } from 'node:child_process'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { RunError } from './run-error.js'

const KEEPER = fileURLToPath(new URL('gateway-main.js', import.meta.url))
/** Behind a process that did not end in its time, ms. */
const GRACE = 5000
/** Of a log, for an error: its end. */
const LOG_BYTES = 16_384

/**
 * A process that ends with this one, whatever happens to this one: a keeper between the two sees to it.
 */
export class KeptProcess {
  pid = 0
  /** @type {Promise<{code: number | null, signal: string | null, asked: boolean}>} */
  ended = new Promise(() => {})
  hasEnded = false
  #keeper
  #patience

  /**
   * @param {object} options
   * @param {string} options.log file that its output is appended to
   * @param {string} options.command
   * @param {string[]} options.args
   * @param {number} options.patience ms that it has to end
   */
  constructor({ log, command, args, patience }) {
    this.log = log
    this.#patience = patience
    // In a group of its own: Ctrl-C in a terminal is for the runner alone.
    this.#keeper = spawn(process.execPath, [KEEPER, String(patience), log, command, ...args], {
      stdio: ['pipe', 'pipe', 'ignore'],
      detached: true,
    })
    this.#keeper.stdin.on('error', () => {})
    /** @type {Promise<any>} */
    this.started = new Promise((resolve, reject) => {
      this.ended = new Promise(end => {
        const done = (/** @type {any} */ how) => {
          this.hasEnded = true
          reject(new RunError(how.error ?? 'it ended at once'))
          end(how)
        }
        createInterface({ input: this.#keeper.stdout }).on('line', line => {
          const message = JSON.parse(line)
          if (message.pid !== undefined) {
            this.pid = message.pid
            resolve(message.pid)
          } else if (message.error !== undefined)
            done({ code: 127, signal: null, asked: false, error: message.error })
          else done(message)
        })
        this.#keeper.once('error', error =>
          done({ code: 127, signal: null, asked: false, error: error.message }),
        )
        this.#keeper.once('close', () => {
          // The keeper itself was killed: what it kept is ours to end.
          if (!this.hasEnded && this.pid > 0) killQuietly(this.pid)
          done({ code: null, signal: null, asked: true })
        })
      })
    })
    this.started.catch(() => {})
  }

  /** @returns {Promise<void>} when it has ended */
  async stop() {
    this.#keeper.stdin.end()
    const timer = setTimeout(() => {
      if (this.pid > 0) killQuietly(this.pid)
      this.#keeper.kill('SIGKILL')
    }, this.#patience + GRACE)
    await this.ended
    clearTimeout(timer)
  }

  /** @returns {Promise<string[]>} the last lines that it has said */
  async lastLines() {
    const size = (await stat(this.log).catch(() => null))?.size ?? 0
    if (size === 0) return []
    let text = ''
    for await (const chunk of createReadStream(this.log, { start: Math.max(0, size - LOG_BYTES) }))
      text += chunk
    return text.split('\n').filter(Boolean)
  }
}

/** @param {number} pid */
function killQuietly(pid) {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
}
