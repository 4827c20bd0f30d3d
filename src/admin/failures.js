/** Wrong keys within the window, ms, after which an address, and after which everybody has to wait. */
const WINDOW = 60_000
export const MAX_OF_ADDRESS = 10
export const MAX_OF_ALL = 60

/**
 * The wrong admin keys of the last minute.
 */
export class Failures {
  /** @type {{address: string, at: number}[]} oldest first; never more than MAX_OF_ALL */
  #recent = []

  /**
   * A key was tried. Over a limit nobody learns whether it was right, and it does not count.
   *
   * @param {string} address
   * @param {boolean} right
   * @param {number} now ms
   * @returns {number} ms to wait before the next one; 0: whether it was right may be told
   */
  tried(address, right, now) {
    // A clock that was set back would lock everybody out.
    this.#recent = this.#recent.filter(({ at }) => at <= now && at > now - WINDOW)
    const own = this.#recent.filter(failure => failure.address === address)
    const wait = Math.max(this.#wait(own, MAX_OF_ADDRESS, now), this.#wait(this.#recent, MAX_OF_ALL, now))
    if (wait === 0 && !right) this.#recent.push({ address, at: now })
    return wait
  }

  /**
   * @param {{at: number}[]} failures oldest first
   * @param {number} max
   * @param {number} now
   */
  #wait(failures, max, now) {
    return failures.length < max ? 0 : failures[failures.length - max].at + WINDOW - now
  }
}
