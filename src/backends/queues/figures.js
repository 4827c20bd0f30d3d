// Figures of one consumer.

/** A failed message that nobody tries again for this long is no longer in work here, ms. */
const FORGET_MS = 60_000

/** @import { ConsumerFigures } from '../../metrics/schema.js' */

export class Figures {
  processed = 0
  errors = 0
  retries = 0
  /** @type {number | null} */
  lag = null
  /** @type {Map<string, number>} */
  #skipped = new Map()
  /** Unix ms of the messages in work. @type {Map<object, number>} */
  #working = new Map()
  /** Delays under way. @type {Map<object, number>} */
  #waiting = new Map()
  #oldest = 0
  /** The oldest failed message, and when it failed last. */
  #failed = { since: 0, at: 0 }
  #clock

  /** @param {string} name @param {string} type @param {() => number} clock unix ms */
  constructor(name, type, clock) {
    this.name = name
    this.type = type
    this.#clock = clock
  }

  /** @param {string} reason */
  skipped(reason) {
    this.#skipped.set(reason, (this.#skipped.get(reason) ?? 0) + 1)
  }

  /** @param {object} token of the try @param {number} since unix ms */
  begins(token, since) {
    this.#working.set(token, since)
  }

  /** @param {object} token @param {number | undefined} since @param {boolean} retry */
  ends(token, since, retry) {
    this.#working.delete(token)
    if (since === undefined) return
    const now = this.#clock()
    this.#oldest = Math.max(this.#oldest, now - since)
    if (retry && (this.#failed.since === 0 || since <= this.#failed.since)) this.#failed = { since, at: now }
    else if (!retry && since === this.#failed.since) this.#failed = { since: 0, at: 0 }
  }

  /** @param {object} token @param {number} ms */
  waits(token, ms) {
    this.#waiting.set(token, ms)
  }

  /** @param {object} token */
  waited(token) {
    this.#waiting.delete(token)
  }

  /** @returns {ConsumerFigures} */
  sample() {
    const now = this.#clock()
    const { name, type, processed, errors, retries, lag } = this
    let age = this.#oldest
    this.#oldest = 0
    for (const since of this.#working.values()) age = Math.max(age, now - since)
    if (this.#failed.since > 0 && now - this.#failed.at < FORGET_MS)
      age = Math.max(age, now - this.#failed.since)
    const backoff = Math.max(0, ...this.#waiting.values())
    return {
      name,
      type,
      processed,
      skipped: Object.fromEntries(this.#skipped),
      errors,
      retries,
      age: Math.max(0, age),
      backoff,
      lag,
    }
  }
}
