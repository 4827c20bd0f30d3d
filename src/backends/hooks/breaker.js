/** Circuit breaker: stops calls to a failed backend. A trial call after the interval checks for recovery. */
//
//   closed --- `failures` in a row ---> open --- `interval` has passed ---> trial (one call)
//     ^                                  ^                                      |
//     +------------- success ------------|------------- failure ----------------+

/** Tickets of `admit`; trials have higher numbers. */
const REFUSED = 0
const CALL = 1

export class Breaker {
  #failures
  #interval
  #clock
  #count = 0
  /** ms; 0: closed */
  #openUntil = 0
  /** Ticket of the trial in progress; 0: none. Earlier calls that end do not allow another trial. */
  #trial = REFUSED
  #lastTicket = CALL

  /** @param {{failures: number, interval: number}} options consecutive calls, 0 = never; ms @param {() => number} clock ms */
  constructor({ failures, interval }, clock) {
    this.#failures = failures
    this.#interval = interval
    this.#clock = clock
  }

  get open() {
    return this.#openUntil > 0
  }

  /** @returns {number} 0: no call allowed; else its ticket: call `success`, `failure` or `unknown` afterwards */
  admit() {
    if (this.#openUntil === 0) return CALL
    if (this.#trial !== REFUSED || this.#clock() < this.#openUntil) return REFUSED
    return (this.#trial = ++this.#lastTicket)
  }

  /** The backend is up. @returns {boolean} whether it was down */
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

  /** The call ended without evidence about the backend. @param {number} ticket */
  unknown(ticket) {
    if (ticket === this.#trial) this.#trial = REFUSED
  }
}
