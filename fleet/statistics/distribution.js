import { waitOf } from '../../src/stats/tick-histogram.js'
import { Recorder } from './recorder.js'

/** @typedef {import('../schema.js').DistributionWire} DistributionWire */

/** Quantiles of the normal distribution: so many standard errors around the mean. */
const ERRORS = { 0.9: 1.645, 0.95: 1.96 }

/** A Recorder that tells what it has taken up. */
export class Distribution extends Recorder {
  /**
   * @param {DistributionWire} wire
   * @returns {Distribution}
   */
  static from(wire) {
    const distribution = new Distribution()
    distribution.merge(wire)
    return distribution
  }

  /** Standard deviation of a sample, ms; of fewer than two: 0. */
  get deviation() {
    return this.count < 2 ? 0 : Math.sqrt(this.m2 / (this.count - 1))
  }

  /**
   * Between what the mean of all durations is, of which these are a sample: normal approximation, good from some dozens on.
   * @param {0.9 | 0.95} level
   * @returns {{low: number, high: number}} ms
   */
  confidence(level) {
    const half = this.count === 0 ? 0 : (ERRORS[level] * this.deviation) / Math.sqrt(this.count)
    return { low: this.mean - half, high: this.mean + half }
  }

  /**
   * @param {number} percent above 0, up to 100
   * @returns {number} what so many of the durations do not exceed, ms, at most 1/128 off; of none: 0
   */
  percentile(percent) {
    // Less than one off is no reason to take the next one: 0.07 * 100 is 7.000000000000001.
    const rank = (percent / 100) * this.count - 1e-6
    let seen = 0
    for (let index = 0; index < this.buckets.length; index++) {
      seen += this.buckets[index]
      if (seen > 0 && seen >= rank) return Math.min(this.max, Math.max(this.min, waitOf(index)))
    }
    return 0
  }
}
