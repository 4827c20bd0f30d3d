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
