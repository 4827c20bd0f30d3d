/** @typedef {import('../../schema.js').Clock} ClockWire */

/** ms that what was learned is relied on, at least: clocks drift, and are set. */
const WINDOW = 60_000

/**
 * The machine's clock, and how it stands to the gateway's. A connect reply says the gateway's time in whole ms: it was from T to T + 1
 * at some moment between the request and the reply. So the offset lies between T - received and T + 1 - sent; what all replies allow
 * is what is known. That it is somewhere in there is certain, not likely, as long as neither clock is set.
 */
export class Clock {
  /** Bounds of this window and of the one before, ms. */
  #low = -Infinity
  #high = Infinity
  #lowBefore = -Infinity
  #highBefore = Infinity
  #began = 0

  /** @returns {number} Unix ms with fractions. It never goes back; processes of a machine differ by some 0.1 ms */
  now() {
    return performance.timeOrigin + performance.now()
  }

  /**
   * @param {number} time of the gateway, whole Unix ms
   * @param {number} sent when it was asked for, or before, on this clock
   * @param {number} received when it came, or after
   */
  learn(time, sent, received) {
    if (received - this.#began > WINDOW) {
      this.#began = received
      this.#lowBefore = this.#low
      this.#highBefore = this.#high
      this.#low = -Infinity
      this.#high = Infinity
    }
    this.#low = Math.max(this.#low, time - received)
    this.#high = Math.min(this.#high, time + 1 - sent)
    // No offset fits all: one of the clocks was set. The newest is right.
    if (this.#low > this.#high) {
      this.#low = time - received
      this.#high = time + 1 - sent
    }
    if (Math.max(this.#low, this.#lowBefore) > Math.min(this.#high, this.#highBefore)) {
      this.#lowBefore = -Infinity
      this.#highBefore = Infinity
    }
  }

  /** @returns {ClockWire} */
  get state() {
    const low = Math.max(this.#low, this.#lowBefore)
    const high = Math.min(this.#high, this.#highBefore)
    if (high === Infinity) return { offset: 0, error: 0, against: 'none' }
    return { offset: (low + high) / 2, error: (high - low) / 2, against: 'gateway' }
  }
}
