/** Seeded pseudo-random numbers (mulberry32). */
export class Random {
  #state

  /** @param {number} seed */
  constructor(seed) {
    this.#state = seed >>> 0
  }

  /** @returns {number} at least 0, less than 1 */
  next() {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let t = this.#state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }

  /** @param {number} end @returns {number} an integer, at least 0, less than `end` */
  below(end) {
    return Math.floor(this.next() * end)
  }

  /** @param {number} probability */
  chance(probability) {
    return this.next() < probability
  }

  /** @template T @param {readonly T[]} list @returns {T} */
  pick(list) {
    return list[this.below(list.length)]
  }
}
