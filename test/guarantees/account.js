/**
 * What one subscriber has got of a channel whose payloads are `{n: 1}, {n: 2} ...`, and what is wrong with it.
 */
export class Account {
  /** The last number, 0 at first. */
  last = 0
  /** @type {string[]} */
  faults = []
  /** Times that it was told that something is missing. */
  told = 0
  /** Whether it may miss some, or get the same again, without being told. */
  mayMiss = false
  mayRepeat = false
  /** Whether it was told so since the last number. */
  #excused = false
  /** @type {{until: number, resolve: () => void}[]} */
  #waiting = []
  label

  /** @param {string} label */
  constructor(label) {
    this.label = label
  }

  /**
   * @param {number} n
   * @param {string} [text] that comes with each number
   */
  took(n, text) {
    if (n <= this.last && this.mayRepeat) return
    if (n <= this.last) this.faults.push(`${this.label}: ${n} after ${this.last}`)
    else if (n > this.last + 1 && !this.#excused && !this.mayMiss)
      this.faults.push(`${this.label}: ${n} follows ${this.last}`)
    if (text !== undefined && text !== textOf(n))
      this.faults.push(`${this.label}: ${n} comes with another text`)
    this.#excused = false
    this.last = Math.max(this.last, n)
    for (const { until, resolve } of this.#waiting) if (until <= this.last) resolve()
  }

  /** It was told that it cannot have everything. */
  missed() {
    this.told++
    this.#excused = true
  }

  /**
   * @param {number} until
   * @returns {Promise<void>} when this number has come
   */
  reaches(until) {
    if (this.last >= until) return Promise.resolve()
    return new Promise(resolve => this.#waiting.push({ until, resolve }))
  }
}

/**
 * A text with letters of one to four bytes, most of which stays the same from one number to the next.
 * @param {number} n
 */
export const textOf = n => `${'Überall gleich: αβγ 漢字 🎈. '.repeat(6)}${'àéîõü'[n % 5]} ${n * 7919}`

/**
 * Random numbers, the same ones in each run.
 * @param {number} seed
 * @returns {(below: number) => number}
 */
export function randomness(seed) {
  let state = seed
  return below => {
    state = (state * 1103515245 + 12345) % 2 ** 31
    return state % below
  }
}
