/** @import { Ticks } from './schema.js' */

/** Buckets per doubling of the wait. The middle of a bucket is at most half of 1/64 off. */
const PER_OCTAVE = 64
const OCTAVE_BITS = 6
/** Largest wait a bucket index can hold, µs: 35 minutes. */
const LONGEST = 2 ** 31 - 1

/**
 * The bucket of a wait: one for each µs below 128 µs, then 64 for each doubling, so a bucket is never wider than
 * 1/64 of its values.
 * @param {number} wait ms
 */
export function bucketOf(wait) {
  const us = Math.min(LONGEST, Math.max(0, Math.round(wait * 1000)))
  const shift = Math.max(0, 31 - Math.clz32(us) - OCTAVE_BITS)
  return shift * PER_OCTAVE + (us >>> shift)
}

/** @param {number} index of a bucket @returns {number} its middle, ms */
export function waitOf(index) {
  const shift = Math.max(0, (index >>> OCTAVE_BITS) - 1)
  return ((index - shift * PER_OCTAVE) * 2 ** shift + (2 ** shift - 1) / 2) / 1000
}

/** @param {number} ms @returns {number} ms, rounded to microseconds */
export const wholeMicroseconds = ms => Math.round(ms * 1000) / 1000

/** @param {Ticks} ticks @param {number} wait ms @returns {number} ms that waits above this one took together */
export function timeAbove({ buckets }, wait) {
  let time = 0
  for (let i = 0; i < buckets.length; i += 2) {
    const middle = waitOf(buckets[i])
    if (middle > wait) time += middle * buckets[i + 1]
  }
  return time
}

/** A mergeable histogram of waits; its percentiles have an error below 1 %. */
export class TickHistogram {
  count = 0
  /** ms */
  sum = 0
  min = Infinity
  max = 0
  /** @type {Map<number, number>} index -> count */
  #buckets = new Map()

  /** @param {number} wait ms @param {number} [times] */
  record(wait, times = 1) {
    this.count += times
    this.sum += wait * times
    if (wait < this.min) this.min = wait
    if (wait > this.max) this.max = wait
    this.#add(bucketOf(wait), times)
  }

  /** @param {number} index @param {number} times */
  #add(index, times) {
    this.#buckets.set(index, (this.#buckets.get(index) ?? 0) + times)
  }

  /** @param {Ticks} ticks */
  merge({ count, min, avg, max, buckets }) {
    if (count === 0) return
    this.count += count
    this.sum += avg * count
    this.min = Math.min(this.min, min)
    this.max = Math.max(this.max, max)
    for (let i = 0; i < buckets.length; i += 2) this.#add(buckets[i], buckets[i + 1])
  }

  /** @returns {Uint32Array} bucket indexes */
  #sorted() {
    return Uint32Array.from(this.#buckets.keys()).sort()
  }

  /**
   * @param {number} percent above 0, up to 100 @param {Uint32Array} [sorted] indexes @returns {number} ms; 0 if empty
   */
  percentile(percent, sorted = this.#sorted()) {
    // Tolerates rounding errors: 0.07 * 100 is 7.000000000000001.
    const rank = (percent / 100) * this.count - 1e-6
    let seen = 0
    for (const index of sorted) {
      seen += this.#buckets.get(index) ?? 0
      if (seen >= rank) return Math.min(this.max, Math.max(this.min, waitOf(index)))
    }
    return 0
  }

  /** @returns {Ticks} */
  toTicks() {
    const { count } = this
    const sorted = this.#sorted()
    const buckets = []
    for (const index of sorted) buckets.push(index, this.#buckets.get(index) ?? 0)
    return {
      count,
      min: count === 0 ? 0 : wholeMicroseconds(this.min),
      avg: count === 0 ? 0 : wholeMicroseconds(this.sum / count),
      p50: wholeMicroseconds(this.percentile(50, sorted)),
      p90: wholeMicroseconds(this.percentile(90, sorted)),
      p99: wholeMicroseconds(this.percentile(99, sorted)),
      max: wholeMicroseconds(this.max),
      buckets,
    }
  }
}
