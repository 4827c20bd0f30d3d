/** Stops the calls to a backend that is down. One call after a while finds out whether it is back. */
//
//   closed --- `failures` in a row ---> open --- `interval` has passed ---> trial (one call)
//     ^                                  ^                                      |
//     +------------- success ------------|------------- failure ----------------+

/** Tickets of `admit`; a trial has a number above them. */
const REFUSED = 0
const CALL = 1

export class Breaker {
  #failures
  #interval
  #clock
  /** Failures in a row. */
  #count = 0
  /** ms; 0: closed */
  #openUntil = 0
  /** Ticket of the trial under way; 0: none. Calls of before may end meanwhile: they make no room for another one. */
  #trial = REFUSED
  #lastTicket = CALL

  /**
   * @param {{failures: number, interval: number}} options calls in a row, 0 = never; ms
   * @param {() => number} clock ms
   */
  constructor({ failures, interval }, clock) {
    this.#failures = failures
    this.#interval = interval
    this.#clock = clock
  }

  get open() {
    return this.#openUntil > 0
  }

  /**
   * @returns {number} 0: no call may be made; else its ticket, for `success`, `failure` or `unknown`, which must follow
   */
  admit() {
    if (this.#openUntil === 0) return CALL
    if (this.#trial !== REFUSED || this.#clock() < this.#openUntil) return REFUSED
    return (this.#trial = ++this.#lastTicket)
  }

  /** The backend is there. @returns {boolean} whether it was down */
  success() {
    const { open } = this
    this.#count = 0
    this.#openUntil = 0
    this.#trial = REFUSED
    return open
  }

  /** The backend is down. @param {number} ticket of the call @returns {boolean} whether this opens the breaker */
  failure(ticket) {
    this.unknown(ticket)
    this.#count++
    if (this.#failures === 0 || this.#count < this.#failures) return false
    const { open } = this
    this.#openUntil = this.#clock() + this.#interval
    return !open
  }

  /** The call ended without saying anything about the backend. @param {number} ticket */
  unknown(ticket) {
    if (ticket === this.#trial) this.#trial = REFUSED
  }
}
