// What drones measure and count (counters.js), for drone, controller, view and reports. May import: src/metrics/
// tick-histogram.js alone, since it is part of the drone's program. Promises: distributions and counters are merged
// without loss; percentiles are never averaged.

import { bucketOf, waitOf } from '../../src/metrics/tick-histogram.js'

/** @typedef {import('../schema.js').DistributionWire} DistributionWire */

/** bucketOf() of the longest time, 35 minutes, is 1663. */
const BUCKETS = 1664
/** Quantiles of the normal distribution: standard errors around the mean. */
const ERRORS = { 0.9: 1.645, 0.95: 1.96 }

/**
 * Durations as a histogram and a few sums, all allocated at construction: 13 KB. Mean and squares follow Welford
 * (Technometrics 4, 1962), merged by Chan, Golub and LeVeque (1979), which never subtracts large squares.
 */
export class Distribution {
  count = 0
  /** ms; of none: Infinity */
  min = Infinity
  /** ms; of none: -Infinity */
  max = -Infinity
  /** ms; of none: 0 */
  mean = 0
  /** Sum of the squares of the differences from the mean, ms². */
  m2 = 0
  /** Counts. As doubles: a week of millions a second exceeds 32 bits. */
  buckets = new Float64Array(BUCKETS)

  /** @param {DistributionWire} wire */
  static from(wire) {
    const distribution = new Distribution()
    distribution.merge(wire)
    return distribution
  }

  /** @param {number} ms may be below 0, when clocks are compared @param {number} [times] */
  record(ms, times = 1) {
    this.#add(times, ms, ms, ms, 0)
    this.buckets[bucketOf(ms)] += times
  }

  /** @param {number} count @param {number} min @param {number} max @param {number} mean @param {number} m2 */
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

  /** @param {DistributionWire} wire that is added to this one */
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

  /** @returns {DistributionWire} and resets */
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

  /** Standard deviation of a sample, ms; of fewer than two: 0. */
  get deviation() {
    return this.count < 2 ? 0 : Math.sqrt(this.m2 / (this.count - 1))
  }

  /**
   * Confidence interval of the mean: normal approximation, good from some dozens on.
   * @param {0.9 | 0.95} level @returns {{low: number, high: number}} ms
   */
  confidence(level) {
    const half = this.count === 0 ? 0 : (ERRORS[level] * this.deviation) / Math.sqrt(this.count)
    return { low: this.mean - half, high: this.mean + half }
  }

  /** @param {number} percent above 0, up to 100 @returns {number} ms, at most 1/128 off; of none: 0 */
  percentile(percent) {
    // Tolerates rounding: 0.07 * 100 is 7.000000000000001.
    const rank = (percent / 100) * this.count - 1e-6
    let seen = 0
    for (let index = 0; index < this.buckets.length; index++) {
      seen += this.buckets[index]
      if (seen > 0 && seen >= rank) return Math.min(this.max, Math.max(this.min, waitOf(index)))
    }
    return 0
  }
}

/** The distributions of a sample. */
const NAMES = /** @type {const} */ (['latency', 'probe', 'connect', 'answer'])

/** @typedef {Record<typeof NAMES[number], DistributionWire>} DistributionWires */

/** Sums of the distributions of samples. */
export class Distributions {
  #all = NAMES.map(name => ({ name, distribution: new Distribution() }))

  /** @param {DistributionWires} sample */
  merge(sample) {
    for (const { name, distribution } of this.#all) distribution.merge(sample[name])
  }

  reset() {
    for (const { distribution } of this.#all) distribution.reset()
  }

  /** @returns {DistributionWires} */
  toWire() {
    const wires = this.#all.map(({ name, distribution }) => [name, distribution.toWire()])
    return /** @type {any} */ (Object.fromEntries(wires))
  }
}
