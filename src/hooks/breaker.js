/** Stops the calls to a backend that is down. One call after a while finds out whether it is back. */
//
//   closed --- `failures` in a row ---> open --- `interval` has passed ---> trial (one call)
//     ^                                  ^                                      |
//     +------------- success ------------|------------- failure ----------------+
export class Breaker {
  #failures
  #interval
  #clock
  /** Failures in a row. */
  #count = 0
  /** ms; 0: closed */
  #openUntil = 0
  #trial = false

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

  /** @returns {boolean} whether a call may be made; then `success`, `failure` or `unknown` must follow */
  admit() {
    if (this.#openUntil === 0) return true
    if (this.#trial || this.#clock() < this.#openUntil) return false
    this.#trial = true
    return true
  }

  /** The backend is there. @returns {boolean} whether it was down */
  success() {
    const { open } = this
    this.#count = 0
    this.#openUntil = 0
    this.#trial = false
    return open
  }

  /** The backend is down. @returns {boolean} whether this opens the breaker */
  failure() {
    this.#trial = false
    this.#count++
    if (this.#failures === 0 || this.#count < this.#failures) return false
    const { open } = this
    this.#openUntil = this.#clock() + this.#interval
    return !open
  }

  /** The call ended without saying anything about the backend. */
  unknown() {
    this.#trial = false
  }
}
