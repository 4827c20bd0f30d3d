// When a ramp has ended: all connections are open, or no more of them can be expected.

/** ms without a change of the count */
const STALLED_MS = 20_000
/** ms without a new maximum, while connections come and go: a server that loses as many as it gets */
const FLAPPING_MS = 120_000

/** Follows the open connections of one ramp. Its clock is the snapshots'. */
export class RampWatch {
  #n
  #open = -1
  #most = -1
  /** unix ms of the last change of the count, and of the last new maximum; neither before the ramp is through */
  #changed = 0
  #grown = 0

  /** @param {number} n connections wanted at its end */
  constructor(n) {
    this.#n = n
  }

  /**
   * Takes every snapshot, in order.
   * @param {{time: number, gauges: {wanted: number, opening: number, open: number}}} snapshot `time`: unix ms
   * @param {boolean} isRamped whether all connections have been asked for
   * @returns {boolean} whether to wait no longer
   */
  hasEnded({ time, gauges: { wanted, opening, open } }, isRamped) {
    if (!isRamped || open !== this.#open) this.#changed = time
    if (!isRamped || open > this.#most) this.#grown = time
    this.#open = open
    this.#most = Math.max(this.#most, open)
    if (!isRamped) return false
    if (wanted === this.#n && open === this.#n && opening === 0) return true
    return time - this.#changed > STALLED_MS || time - this.#grown > FLAPPING_MS
  }
}
