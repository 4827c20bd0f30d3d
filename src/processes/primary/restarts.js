// When and in which order workers are started again.

/** @import { Logger } from 'pino' */

/** Delay before the second attempt of a worker that died while starting, ms; doubled for each further one. */
const FIRST_MS = 100
const MAX_MS = 30_000
/** Maximum delay while no other worker listens or starts, ms. */
const ALONE_MS = 500
/** Workers that are replaced at once after a quiet time, for each slot; at least MIN_BURST. */
const BURST_PER_SLOT = 2
const MIN_BURST = 4
/** Workers replaced a second in the long run, for each slot. */
const RATE_PER_SLOT = 0.5

/**
 * When a dead worker is replaced. One that had listened is replaced at once; a token bucket over all slots keeps
 * workers that die of their first client from becoming a fork storm. One that died while starting waits, longer with
 * each failed start in a row. The last worker that tries never waits long.
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
   * @param {number} failures starts in a row of this slot that failed; 0: the worker had listened
   * @param {boolean} alone no other worker listens or starts
   * @returns {number} ms to wait before the replacement starts
   */
  next(failures, alone) {
    const delay = failures === 0 ? this.#take() : Math.min(MAX_MS, FIRST_MS * 2 ** (failures - 1))
    return Math.ceil(alone ? Math.min(ALONE_MS, delay) : delay)
  }

  /** Takes a token, also one of the future. @returns {number} ms until it is there */
  #take() {
    const now = this.#clock()
    this.#tokens = Math.min(this.#burst, this.#tokens + (now - this.#at) * this.#rate)
    this.#at = now
    this.#tokens--
    return this.#tokens >= 0 ? 0 : Math.min(MAX_MS, -this.#tokens / this.#rate)
  }
}

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
