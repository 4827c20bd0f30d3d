/** @import { Logger } from 'pino' */

/** Replaces all workers, one after another, so that clients come back evenly and the others carry the load. */
export class RollingRestart {
  /** Whether one is under way. */
  running = false
  #replace
  #stopping
  #log
  /** @type {Promise<boolean>} the last one */
  #last = Promise.resolve(true)
  /** @type {Promise<boolean> | null} begins after the one under way */
  #queued = null

  /**
   * @param {readonly (() => Promise<void>)[]} replace each replaces one worker: resolves when the old one has ended
   * @param {() => boolean} stopping whether the gateway ends @param {Pick<Logger, 'info' | 'error'>} log
   */
  constructor(replace, stopping, log) {
    this.#replace = replace
    this.#stopping = stopping
    this.#log = log
  }

  /**
   * Requests during a rolling restart share one that follows it.
   * @param {string} reason for the log
   * @returns {Promise<boolean>} when the last old worker has ended; false if it ended early
   */
  request(reason) {
    if (this.#stopping()) return Promise.resolve(false)
    if (this.#queued !== null) return this.#queued
    const run = () => {
      this.#queued = null
      return this.#run(reason)
    }
    if (!this.running) return (this.#last = this.#run(reason))
    return (this.#queued = this.#last = this.#last.then(run))
  }

  /** @param {string} reason @returns {Promise<boolean>} */
  async #run(reason) {
    const begun = performance.now()
    this.running = true
    this.#log.info({ reason, workers: this.#replace.length }, 'rolling restart begins')
    try {
      for (const [worker, replace] of this.#replace.entries()) {
        if (this.#stopping()) return false
        try {
          await replace()
        } catch (error) {
          const text = 'rolling restart ended early: a new worker did not start, the old ones go on'
          this.#log.error({ worker, reason: error.message }, text)
          return false
        }
        if (!this.#stopping()) this.#log.info({ worker }, 'worker replaced')
      }
    } finally {
      this.running = false
    }
    if (this.#stopping()) return false
    this.#log.info({ ms: Math.round(performance.now() - begun) }, 'rolling restart ended')
    return true
  }
}
