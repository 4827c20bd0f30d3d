import { bucketOf } from '../../src/stats/tick-histogram.js'

/** @typedef {import('../schema.js').DistributionWire} DistributionWire */

/** bucketOf() of the longest time, 35 minutes, is 1663. */
const BUCKETS = 1664

/**
 * Takes durations up, of which nothing is kept but a few sums and a histogram. All memory is there from the beginning: 13 KB.
 * Mean and squares follow Welford (Technometrics 4, 1962), merged by Chan, Golub and LeVeque (1979): no sum of large squares
 * that are subtracted from each other.
 */
export class Recorder {
  count = 0
  /** ms; of none: Infinity */
  min = Infinity
  /** ms; of none: -Infinity */
  max = -Infinity
  /** ms; of none: 0 */
  mean = 0
  /** Sum of the squares of the differences from the mean, ms². */
  m2 = 0
  /** How many are in each bucket: as doubles, for a week of millions a second is more than 32 bits hold. */
  buckets = new Float64Array(BUCKETS)

  /**
   * @param {number} ms may be below 0, when clocks are compared
   * @param {number} [times]
   */
  record(ms, times = 1) {
    this.#add(times, ms, ms, ms, 0)
    this.buckets[bucketOf(ms)] += times
  }

  /**
   * @param {number} count
   * @param {number} min
   * @param {number} max
   * @param {number} mean
   * @param {number} m2
   */
  #add(count, min, max, mean, m2) {
    const all = this.count + count
    const delta = mean - this.mean
    const share = count / all
    this.m2 += m2 + delta * delta * this.count * share
    this.mean += delta * share
    this.count = all
    if (min < this.min) this.min = min
    if (max > this.max) this.max = max
  }

  /** @param {DistributionWire} wire of another one, which is added to this one */
  merge({ count, min, max, mean, m2, buckets }) {
    if (count === 0) return
    this.#add(count, min, max, mean, m2)
    for (let i = 0; i < buckets.length; i += 2) this.buckets[buckets[i]] += buckets[i + 1]
  }

  /** @returns {DistributionWire} of none, all are 0 */
  toWire() {
    const { count, mean, m2 } = this
    /** @type {number[]} */
    const buckets = []
    this.buckets.forEach((times, index) => {
      if (times > 0) buckets.push(index, times)
    })
    return { count, min: count && this.min, max: count && this.max, mean, m2, buckets }
  }

  /** @returns {DistributionWire} and begins anew */
  take() {
    const wire = this.toWire()
    this.reset()
    return wire
  }

  reset() {
    this.count = this.mean = this.m2 = 0
    this.min = Infinity
    this.max = -Infinity
    this.buckets.fill(0)
  }
}
