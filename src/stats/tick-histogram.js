/** @typedef {import('./schema.js').Ticks} Ticks */

/** Buckets for each doubling of the wait. A bucket's middle is at most half of 1/64 off. */
const PER_OCTAVE = 64
const OCTAVE_BITS = 6
/** What a bucket's index can be made of, µs: 35 minutes. */
const LONGEST = 2 ** 31 - 1

/**
 * The bucket of a wait. Indexes grow with the wait: one for each µs below 128 µs, then 64 for each doubling, so that a bucket is
 * never wider than 1/64 of what is in it.
 * @param {number} wait ms
 */
export function bucketOf(wait) {
  const us = Math.min(LONGEST, Math.max(0, Math.round(wait * 1000)))
  const shift = Math.max(0, 31 - Math.clz32(us) - OCTAVE_BITS)
  return shift * PER_OCTAVE + (us >>> shift)
}

/**
 * @param {number} index of a bucket
 * @returns {number} the middle of it, ms
 */
export function waitOf(index) {
  const shift = Math.max(0, (index >>> OCTAVE_BITS) - 1)
  return ((index - shift * PER_OCTAVE) * 2 ** shift + (2 ** shift - 1) / 2) / 1000
}

/** @param {number} ms */
const wholeMicroseconds = ms => Math.round(ms * 1000) / 1000

/**
 * Waits, as a histogram that can be merged with others: percentiles are those of all waits together, with an error below 1 %.
 */
export class TickHistogram {
  count = 0
  /** All waits together, ms. */
  sum = 0
  min = Infinity
  max = 0
  /** @type {Map<number, number>} index -> count */
  #buckets = new Map()

  /**
   * @param {number} wait ms
   * @param {number} [times]
   */
  record(wait, times = 1) {
    this.count += times
    this.sum += wait * times
    if (wait < this.min) this.min = wait
    if (wait > this.max) this.max = wait
    this.#add(bucketOf(wait), times)
  }

  /**
   * @param {number} index
   * @param {number} times
   */
  #add(index, times) {
    this.#buckets.set(index, (this.#buckets.get(index) ?? 0) + times)
  }

  /** @param {Ticks} ticks of another histogram, which are added to these */
  merge({ count, min, avg, max, buckets }) {
    if (count === 0) return
    this.count += count
    this.sum += avg * count
    this.min = Math.min(this.min, min)
    this.max = Math.max(this.max, max)
    for (let i = 0; i < buckets.length; i += 2) this.#add(buckets[i], buckets[i + 1])
  }

  /** @returns {[index: number, count: number][]} shorter waits first */
  #sorted() {
    return [...this.#buckets].sort((a, b) => a[0] - b[0])
  }

  /**
   * @param {number} percent above 0, up to 100
   * @returns {number} the wait that so many of the waits do not exceed, ms; 0 if there are none
   */
  percentile(percent) {
    return this.#at([percent])[0]
  }

  /**
   * @param {number[]} percents ascending
   * @returns {number[]} ms
   */
  #at(percents) {
    const sorted = this.#sorted()
    let at = 0
    let seen = sorted.length > 0 ? sorted[0][1] : 0
    return percents.map(percent => {
      if (sorted.length === 0) return 0
      // Less than a wait off is no reason to take the next one: 0.07 * 100 is 7.000000000000001.
      const rank = Math.max(1, Math.ceil((percent / 100) * this.count - 1e-6))
      while (seen < rank && at < sorted.length - 1) seen += sorted[++at][1]
      return Math.min(this.max, Math.max(this.min, waitOf(sorted[at][0])))
    })
  }

  /** @returns {Ticks} */
  toTicks() {
    const { count } = this
    const [p50, p90, p99] = this.#at([50, 90, 99]).map(wholeMicroseconds)
    return {
      count,
      min: count === 0 ? 0 : wholeMicroseconds(this.min),
      avg: count === 0 ? 0 : wholeMicroseconds(this.sum / count),
      p50,
      p90,
      p99,
      max: wholeMicroseconds(this.max),
      buckets: this.#sorted().flat(),
    }
  }

  /**
   * @param {Ticks} ticks
   * @returns {TickHistogram}
   */
  static fromTicks(ticks) {
    const histogram = new TickHistogram()
    histogram.merge(ticks)
    return histogram
  }
}
