import { Call } from '../transport/calls.js'
import { Failures } from './failures.js'

/** The worker that counts for all of its node. */
const COUNTER = 0
/** How long it may take, ms. */
const PATIENCE = 2000
const RIGHT = 1

/**
 * Counts wrong keys over all workers of a node: one of them is told of every key that was tried, and says whether the answer
 * may be given. A guesser learns nothing before his guess has been counted, however many connections he has.
 */
export class LoginGuard {
  #control
  #index
  #clock
  #failures = new Failures()

  /**
   * @param {object} parts
   * @param {import('../broker/contract.js').Control} parts.control
   * @param {import('../transport/calls.js').Calls} parts.calls
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
   * @param {string} address
   * @param {boolean} right
   * @returns {Promise<number>} ms to wait; 0: whether it was right may be told
   */
  tried(address, right) {
    const here = () => this.#failures.tried(address, right, this.#clock())
    if (this.#index === COUNTER) return Promise.resolve(here())
    return new Promise(resolve => {
      // While that worker is away or hangs, each one counts for itself.
      const timer = setTimeout(() => resolve(here()), PATIENCE)
      const request = Buffer.concat([
        Buffer.from([Call.ADMIN_LOGIN, right ? RIGHT : 0]),
        Buffer.from(address),
      ])
      this.#control.call('', COUNTER, request, (error, answer) => {
        clearTimeout(timer)
        resolve(error ? here() : Number(answer))
      })
    })
  }
}
