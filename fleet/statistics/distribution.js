// Measurements and counters (counters.js) of drones, for drone, controller, view and reports. May import:
// src/metrics/tick-histogram.js alone, which is part of the drone's program. Promises: distributions and counters are
// merged without loss; percentiles are never averaged.

import { bucketOf, waitOf } from '../../src/metrics/tick-histogram.js'

/** @import { DistributionWire } from '../schema.js' */

/** bucketOf() of the longest time, 35 minutes, is 1663. */
const BUCKETS = 1664
/** Quantiles of the normal distribution: standard errors around the mean. */
const ERRORS = { 0.9: 1.645, 0.95: 1.96 }

/**
 * A histogram and a few sums, 13 KB. Mean and squares follow Welford (Technometrics 4, 1962), merged by Chan, Golub and
 * LeVeque (1979), which never subtracts large squares.
 */
export class Distribution {
  count = 0
  /** ms; empty: Infinity */
  min = Infinity
  /** ms; empty: -Infinity */
  max = -Infinity
  /** ms; empty: 0 */
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

  /** @param {number} ms may be negative: clocks differ @param {number} [times] */
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

  /** @param {DistributionWire} wire to add */
  merge({ count, min, max, mean, m2, buckets }) {
    if (count === 0) return
    this.#add(count, min, max, mean, m2)
    for (let i = 0; i < buckets.length; i += 2) this.buckets[buckets[i]] += buckets[i + 1]
  }

  /** @returns {DistributionWire} empty: all 0 */
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

  /** Sample standard deviation, ms; fewer than two values: 0. */
  get deviation() {
    return this.count < 2 ? 0 : Math.sqrt(this.m2 / (this.count - 1))
  }

  /** Of the mean, in ms: normal approximation, for dozens of values or more. @param {0.9 | 0.95} level */
  confidence(level) {
    const half = this.count === 0 ? 0 : (ERRORS[level] * this.deviation) / Math.sqrt(this.count)
    return { low: this.mean - half, high: this.mean + half }
  }

  /** @param {number} percent above 0, up to 100 @returns {number} ms, error at most 1/128; empty: 0 */
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

/** Distributions of a sample. */
export const DISTRIBUTIONS = /** @type {const} */ (['latency', 'probe', 'connect', 'answer'])

/** @typedef {Record<typeof DISTRIBUTIONS[number], DistributionWire>} DistributionWires */

export class Distributions {
  #all = DISTRIBUTIONS.map(name => ({ name, distribution: new Distribution() }))

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
