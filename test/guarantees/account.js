/** The publications that one subscriber received from a channel with the payloads `{n: 1}, {n: 2} ...`, and their faults. */
export class Account {
  /** The last number, 0 at first. */
  last = 0
  /** @type {string[]} */
  faults = []
  /** Times that the gateway reported lost publications. */
  losses = 0
  /** Whether publications may be missing, or repeated, without a report. */
  mayMiss = false
  mayRepeat = false
  /** Whether a loss was reported since the last number. */
  #lossReported = false
  /** @type {{until: number, resolve: () => void}[]} */
  #waiting = []

  /** @param {string} label */
  constructor(label) {
    this.label = label
  }

  /** @param {number} n @param {string} [text] that comes with each number */
  receive(n, text) {
    if (n <= this.last && this.mayRepeat) return
    if (n <= this.last) this.faults.push(`${this.label}: ${n} after ${this.last}`)
    else if (n > this.last + 1 && !this.#lossReported && !this.mayMiss)
      this.faults.push(`${this.label}: ${n} follows ${this.last}`)
    if (text !== undefined && text !== textOf(n))
      this.faults.push(`${this.label}: ${n} comes with another text`)
    this.#lossReported = false
    this.last = Math.max(this.last, n)
    for (const { until, resolve } of this.#waiting) if (until <= this.last) resolve()
  }

  /** The gateway reports lost publications. */
  reportLoss() {
    this.losses++
    this.#lossReported = true
  }

  /** @param {number} until @returns {Promise<void>} when this number has been received */
  reaches(until) {
    if (this.last >= until) return Promise.resolve()
    return new Promise(resolve => this.#waiting.push({ until, resolve }))
  }
}

/** A text with characters of one to four bytes, which changes little from one number to the next. @param {number} n */
export const textOf = n => `${'Überall gleich: αβγ 漢字 🎈. '.repeat(6)}${'àéîõü'[n % 5]} ${n * 7919}`

/** Pseudo-random numbers that a seed repeats. @param {number} seed @returns {(below: number) => number} */
export function randomness(seed) {
  let state = seed
  return below => {
    state = (state * 1103515245 + 12345) % 2 ** 31
    return state % below
  }
}
