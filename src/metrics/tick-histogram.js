/** @import { Ticks } from './schema.js' */

/** Buckets per doubling of the wait; a bucket's midpoint is at most 1/128 off. */
const PER_OCTAVE = 64
const OCTAVE_BITS = 6
/** µs: 35 minutes. */
const LONGEST = 2 ** 31 - 1

/** One for each µs below 128 µs, then 64 per doubling: at most 1/64 of the value wide. @param {number} wait ms */
export function bucketOf(wait) {
  const us = Math.min(LONGEST, Math.max(0, Math.round(wait * 1000)))
  const shift = Math.max(0, 31 - Math.clz32(us) - OCTAVE_BITS)
  return shift * PER_OCTAVE + (us >>> shift)
}

/** Middle of a bucket, ms. @param {number} index */
export function waitOf(index) {
  const shift = Math.max(0, (index >>> OCTAVE_BITS) - 1)
  return ((index - shift * PER_OCTAVE) * 2 ** shift + (2 ** shift - 1) / 2) / 1000
}

/** @param {number} ms */
export const wholeMicroseconds = ms => Math.round(ms * 1000) / 1000

/** Total ms of the waits above this one. @param {Ticks} ticks @param {number} wait ms */
export function timeAbove({ buckets }, wait) {
  let time = 0
  for (let i = 0; i < buckets.length; i += 2) {
    const middle = waitOf(buckets[i])
    if (middle > wait) time += middle * buckets[i + 1]
  }
  return time
}

/** Mergeable; its percentiles have an error below 1 %. */
export class TickHistogram {
  count = 0
  /** ms */
  sum = 0
  min = Infinity
  max = 0
  /** Index -> count. @type {Map<number, number>} */
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

  #sorted() {
    return Uint32Array.from(this.#buckets.keys()).sort()
  }

  /** In ms; 0 if empty. @param {number} percent above 0, up to 100 @param {Uint32Array} [sorted] */
  percentile(percent, sorted = this.#sorted()) {
    // Rounding: 0.07 * 100 is 7.000000000000001.
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
