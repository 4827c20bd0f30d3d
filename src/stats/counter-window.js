/** @typedef {Record<string, number>} Counters that only grow */

/**
 * What counters have gained over the last whole window.
 */
export class CounterWindow {
  #read
  #start
  /** @type {Counters | undefined} undefined until the first window has passed */
  last

  /** @param {() => Counters} read */
  constructor(read) {
    this.#read = read
    this.#start = read()
  }

  /** Ends a window, and begins the next. */
  roll() {
    const now = this.#read()
    this.last = Object.fromEntries(
      Object.entries(now).map(([name, count]) => [name, count - this.#start[name]]),
    )
    this.#start = now
  }
}
