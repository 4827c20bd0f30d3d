// Log-linear buckets: each power of two is cut into 64 equal parts, so a value is known to within 1.6 % wherever it lies.
// Histograms of several processes are added up; percentiles are only ever taken from the sum.

const PARTS = 64
const PARTS_BITS = 6
/** Up to 2^38 us, three days. */
const BUCKETS = 33 * PARTS

/** How often each duration occurred. Values are whole microseconds. */
export class Histogram {
  #counts
  #max

  /** @param {{counts: Uint32Array, max: number}} [state] what `state` of another one gave */
  constructor({ counts, max } = { counts: new Uint32Array(BUCKETS), max: 0 }) {
    this.#counts = counts
    this.#max = max
  }

  /** @param {number} micros */
  add(micros) {
    this.#counts[bucketOf(micros)]++
    if (micros > this.#max) this.#max = micros
  }

  /** @param {Histogram} other is left as it is */
  merge(other) {
    const { counts, max } = other.state
    for (let bucket = 0; bucket < BUCKETS; bucket++) this.#counts[bucket] += counts[bucket]
    this.#max = Math.max(this.#max, max)
  }

  /** What can be sent to another process. */
  get state() {
    return { counts: this.#counts, max: this.#max }
  }

  /** @returns {number} how many values were added */
  get count() {
    return this.#counts.reduce((sum, count) => sum + count, 0)
  }

  /** @returns {number} the largest value, exact */
  get max() {
    return this.#max
  }

  /**
   * @param {number} percent
   * @returns {number} microseconds that so many percent of the values do not exceed, by the bucket's upper end; 0 when empty
   */
  percentile(percent) {
    const wanted = Math.max(1, Math.ceil((percent / 100) * this.count))
    let seen = 0
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      seen += this.#counts[bucket]
      if (seen >= wanted) return Math.min(this.#max, startOf(bucket + 1) - 1)
    }
    return this.#max
  }
}

/**
 * @param {number} micros
 * @returns {number}
 */
function bucketOf(micros) {
  if (micros < PARTS) return Math.max(micros, 0)
  if (micros >= 2 ** 38) return BUCKETS - 1
  // Math.clz32 sees 32 bits only.
  const exponent = micros < 2 ** 32 ? 31 - Math.clz32(micros) : 63 - Math.clz32(micros / 2 ** 32)
  const part = Math.floor(micros / 2 ** (exponent - PARTS_BITS)) - PARTS
  return (exponent - PARTS_BITS + 1) * PARTS + part
}

/**
 * @param {number} bucket
 * @returns {number} the smallest value in it
 */
function startOf(bucket) {
  if (bucket < PARTS) return bucket
  const row = Math.floor(bucket / PARTS)
  return (PARTS + (bucket % PARTS)) * 2 ** (row - 1)
}
