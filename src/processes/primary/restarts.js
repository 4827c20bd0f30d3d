// Timing and order of worker replacements.

/** @import { Logger } from 'pino' */

/** Delay before the second attempt after a failed start, ms; doubles with each attempt. */
const FIRST_MS = 100
const MAX_MS = 30_000
/** Maximum delay while no other worker listens or starts, ms. */
const ALONE_MS = 500
/** Token bucket: burst per slot, minimum burst, tokens per second and slot. */
const BURST_PER_SLOT = 2
const MIN_BURST = 4
const RATE_PER_SLOT = 0.5

/**
 * Delays before dead workers are replaced. A worker that had listened is replaced immediately, limited by a token
 * bucket across slots: workers that crash on their first client cause no fork storm. After a failed start the delay
 * doubles with each consecutive failure. The last worker never waits long.
 */
export class RestartDelays {
  #burst
  #rate
  #tokens
  #at
  #clock

  /** @param {number} slots @param {() => number} clock ms, monotonic */
  constructor(slots, clock) {
    this.#burst = Math.max(MIN_BURST, BURST_PER_SLOT * slots)
    this.#rate = (RATE_PER_SLOT * slots) / 1000
    this.#tokens = this.#burst
    this.#clock = clock
    this.#at = clock()
  }

  /**
   * @param {number} failures consecutive failed starts of this slot; 0: the worker had listened
   * @param {boolean} alone no other worker listens or starts
   * @returns {number} ms before the replacement starts
   */
  next(failures, alone) {
    const delay = failures === 0 ? this.#take() : Math.min(MAX_MS, FIRST_MS * 2 ** (failures - 1))
    return Math.ceil(alone ? Math.min(ALONE_MS, delay) : delay)
  }

  /** Takes a token, possibly a future one. @returns {number} ms until it is available */
  #take() {
    const now = this.#clock()
    this.#tokens = Math.min(this.#burst, this.#tokens + (now - this.#at) * this.#rate)
    this.#at = now
    this.#tokens--
    return this.#tokens >= 0 ? 0 : Math.min(MAX_MS, -this.#tokens / this.#rate)
  }
}

/** Replaces all workers, one after another: clients reconnect evenly, and the other workers take the load. */
export class RollingRestart {
  /** Whether one is in progress. */
  running = false
  #replace
  #stopping
  #log
  /** @type {Promise<boolean>} the last one */
  #last = Promise.resolve(true)
  /** @type {Promise<boolean> | null} starts after the current one */
  #queued = null

  /**
   * @param {readonly (() => Promise<void>)[]} replace each replaces one worker; resolves when the old one exits
   * @param {() => boolean} stopping whether the gateway shuts down
   * @param {Pick<Logger, 'info' | 'error'>} log
   */
  constructor(replace, stopping, log) {
    this.#replace = replace
    this.#stopping = stopping
    this.#log = log
  }

  /**
   * Requests during a rolling restart share one that follows it.
   * @param {string} reason for the log
   * @returns {Promise<boolean>} when the last old worker has exited; false if interrupted
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
    this.#log.info({ reason, workers: this.#replace.length }, 'rolling restart started')
    try {
      for (const [worker, replace] of this.#replace.entries()) {
        if (this.#stopping()) return false
        try {
          await replace()
        } catch (error) {
          const text = 'rolling restart aborted: a new worker did not start, the old ones keep running'
          this.#log.error({ worker, reason: error.message }, text)
          return false
        }
        if (!this.#stopping()) this.#log.info({ worker }, 'worker replaced')
      }
    } finally {
      this.running = false
    }
    if (this.#stopping()) return false
    this.#log.info({ ms: Math.round(performance.now() - begun) }, 'rolling restart finished')
    return true
  }
}
