/** @import { Overload } from '../../metrics/overload.js' */
/** @import { Refusals } from '../../metrics/refusals.js' */
/** @import { Exchange } from '../server/contract.js' */

/** At least one connection, even for rates below one. @param {number} rate */
const burstOf = rate => Math.max(1, rate)

/**
 * Admission of new connections: client.connection_limit over all workers, this worker's share of
 * client.connection_rate_limit, and its overload. Refused connections get HTTP 503.
 */
export class Admission {
  otherConnections = 0
  #limit
  #rate
  #burst
  #tokens
  #filledAt
  #clock
  #open
  #overload
  #refusals

  /**
   * @param {object} options @param {number} options.limit connections; 0 = no limit
   * @param {number} options.rate connections per second of this worker; 0 = no limit
   * @param {() => number} options.open connections of this worker @param {() => number} options.clock ms
   * @param {Pick<Overload, 'reason'>} options.overload @param {Pick<Refusals, 'add'>} options.refusals
   */
  constructor({ limit, rate, open, clock, overload, refusals }) {
    this.#limit = limit
    this.#rate = rate
    this.#burst = burstOf(rate)
    this.#tokens = this.#burst
    this.#clock = clock
    this.#filledAt = clock()
    this.#open = open
    this.#overload = overload
    this.#refusals = refusals
  }

  /** @param {{limit: number, rate: number}} limits as for the constructor */
  setLimits({ limit, rate }) {
    this.#limit = limit
    this.#rate = rate
    this.#burst = burstOf(rate)
    this.#tokens = Math.min(this.#tokens, this.#burst)
  }

  get overloaded() {
    return this.#overload.reason !== null
  }

  /** @param {Exchange} exchange @param {boolean} [returning] known clients are admitted during overload */
  admits(exchange, returning = false) {
    const reason = this.overloaded && !returning ? 'overload' : this.#fault()
    if (reason === '') return true
    this.#refusals.add(reason, exchange)
    return false
  }

  /** @returns {string} '' if admitted, which counts towards the rate */
  #fault() {
    if (this.#limit > 0 && this.#open() + this.otherConnections >= this.#limit) return 'connection_limit'
    if (this.#rate === 0) return ''
    const now = this.#clock()
    const passed = Math.max(0, now - this.#filledAt) / 1000
    this.#tokens = Math.min(this.#burst, this.#tokens + passed * this.#rate)
    this.#filledAt = now
    if (this.#tokens < 1) return 'connection_rate_limit'
    this.#tokens--
    return ''
  }
}
