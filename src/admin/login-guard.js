import { Call } from '../transport/calls.js'

/** @import { Control } from '../broker/contract.js' */
/** @import { Calls } from '../transport/calls.js' */

/** Wrong keys in this window (ms) count; at a limit below, the address or everybody has to wait. */
const WINDOW = 60_000
export const MAX_PER_ADDRESS = 10
export const MAX_TOTAL = 60

/** Wrong admin keys of the last minute. */
export class FailedLogins {
  /** @type {{address: string, at: number}[]} oldest first; never more than MAX_OF_ALL */
  #recent = []

  /**
   * Counts a login attempt. Over a limit the attempt does not count, and its result must not be shown.
   * @param {string} address @param {boolean} right @param {number} now ms
   * @returns {number} ms to wait before the next one; 0: the result may be shown
   */
  tried(address, right, now) {
    // A clock that was set back would lock everybody out.
    this.#recent = this.#recent.filter(({ at }) => at <= now && at > now - WINDOW)
    const own = this.#recent.filter(failure => failure.address === address)
    const wait = Math.max(this.#wait(own, MAX_PER_ADDRESS, now), this.#wait(this.#recent, MAX_TOTAL, now))
    if (wait === 0 && !right) this.#recent.push({ address, at: now })
    return wait
  }

  /** @param {{at: number}[]} failures oldest first @param {number} max @param {number} now */
  #wait(failures, max, now) {
    return failures.length < max ? 0 : failures[failures.length - max].at + WINDOW - now
  }
}

/** Index of the worker that counts for its node. */
const COUNTING_WORKER = 0
/** Time limit for its answer, ms. */
const TIMEOUT = 2000
const RIGHT = 1

/**
 * Counts wrong keys over all workers of a node: one worker counts every attempt before its result is shown,
 * so more connections allow no more guesses.
 */
export class LoginGuard {
  #control
  #index
  #clock
  #failures = new FailedLogins()

  /**
   * @param {object} parts
   * @param {Control} parts.control
   * @param {Calls} parts.calls
   * @param {number} parts.index of this worker
   * @param {() => number} parts.clock ms
   */
  constructor({ control, calls, index, clock }) {
    this.#control = control
    this.#index = index
    this.#clock = clock
    calls.on(Call.ADMIN_LOGIN, (request, answer) => {
      const wait = this.#failures.tried(request.toString('utf8', 1), request[0] === RIGHT, clock())
      answer(String(wait))
    })
  }

  /**
   * @param {string} address @param {boolean} right
   * @returns {Promise<number>} ms to wait; 0: the result may be shown
   */
  tried(address, right) {
    const here = () => this.#failures.tried(address, right, this.#clock())
    if (this.#index === COUNTING_WORKER) return Promise.resolve(here())
    return new Promise(resolve => {
      // Without an answer of the counting worker each worker counts its own.
      const timer = setTimeout(() => resolve(here()), TIMEOUT)
      const request = Buffer.concat([
        Buffer.from([Call.ADMIN_LOGIN, right ? RIGHT : 0]),
        Buffer.from(address),
      ])
      this.#control.call('', COUNTING_WORKER, request, (error, answer) => {
        clearTimeout(timer)
        resolve(error ? here() : Number(answer))
      })
    })
  }
}
