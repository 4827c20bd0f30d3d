// Raises (or lowers) the number of connections in a straight line, a step a second.

/** @typedef {{from: number, to: number, began: number, ends: number}} RampState */

/** ms between two steps. */
const STEP = 1000

/**
 * @param {RampState} ramp
 * @param {number} now
 * @returns {number} connections
 */
export function rampedAt({ from, to, began, ends }, now) {
  if (now >= ends) return to
  const done = Math.max(0, (now - began) / (ends - began))
  return Math.round(from + (to - from) * done)
}

/**
 * A ramp under way. It is ended by its last step, by `end`, or by a step that failed.
 */
export class Ramp {
  #state
  #step
  /** @type {NodeJS.Timeout | null} */
  #timer = null
  /** @type {(() => void)} */
  #resolve = () => {}
  /** @type {((error: Error) => void)} */
  #reject = () => {}
  #over = false

  /**
   * @param {RampState} state
   * @param {(n: number) => Promise<void>} step tells the drones
   */
  constructor(state, step) {
    this.#state = state
    this.#step = step
    /** @type {Promise<void>} when the last step was told; rejects if it was ended before */
    this.done = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    // Whoever does not wait for it hears of it by the fleet's events.
    this.done.catch(() => {})
  }

  async run() {
    while (!this.#over) {
      const now = Date.now()
      const last = now >= this.#state.ends
      try {
        await this.#step(rampedAt(this.#state, now))
      } catch (error) {
        return this.end(error)
      }
      if (this.#over) return
      if (last) {
        this.#over = true
        return this.#resolve()
      }
      const wait = Math.min(STEP - ((Date.now() - this.#state.began) % STEP), this.#state.ends - Date.now())
      await new Promise(resolve => {
        this.#timer = setTimeout(() => resolve(undefined), Math.max(0, wait))
      })
    }
  }

  /** @param {Error} why */
  end(why) {
    if (this.#over) return
    this.#over = true
    clearTimeout(this.#timer ?? undefined)
    this.#reject(why)
  }
}
