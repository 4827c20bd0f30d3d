/** @import { Worker } from 'node:cluster' */

/** The place of one worker: one process after another. */
export class Slot {
  /** @type {Worker | null} */
  worker = null
  startedAt = 0
  /** Deaths in a row. */
  deaths = 0
  listening = false
  open = 0
  reason = ''
  /** A restart was requested and the new worker does not listen yet. */
  restarting = false
  /** @type {any} last sent to its worker; null: none yet */
  config = null
  /** @type {(() => void)[]} */
  waiting = []

  /** @param {number} index */
  constructor(index) {
    this.index = index
  }

  /** @returns {Promise<void>} when its worker listens and is not about to end, or the gateway ends */
  up() {
    if (this.listening && !this.restarting) return Promise.resolve()
    return new Promise(resolve => this.waiting.push(resolve))
  }

  /** Resolves the promises of `up`. */
  isUp() {
    for (const resolve of this.waiting.splice(0)) resolve()
  }

  /** @param {object} message @returns {boolean} false if its worker cannot be reached */
  send(message) {
    return this.worker?.isConnected() ? this.worker.send(message) : false
  }

  /** @param {string} reason */
  kill(reason) {
    this.reason = reason
    this.worker?.process.kill('SIGKILL')
  }
}
