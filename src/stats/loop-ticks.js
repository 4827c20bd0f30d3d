import { monitorEventLoopDelay } from 'node:perf_hooks'
import { bucketOf, TickHistogram } from './tick-histogram.js'

/** @import { Ticks } from './schema.js' */

/** Measuring interval, ms: each one wakes the process, which is most of the cost of all statistics. */
const RESOLUTION_MS = 10
const NS_PER_MS = 1e6
/** Reported percentiles, read exactly. */
const PERCENTILES = Object.freeze([50, 90, 99])
/** Further reads of the histogram, some µs each. */
const MAX_READS = 16

/** @typedef {{rank: number, interval: number}} Point rank of an interval (ms) in the library's histogram */

/** The values between two points, exclusive. */
class Gap {
  /** @param {Point} low @param {Point} high */
  constructor(low, high) {
    this.low = low
    this.high = high
    this.count = high.rank - low.rank - 1
    this.span = high.interval - low.interval
    /** Its uncertainty. */
    this.weight = bucketOf(low.interval) === bucketOf(high.interval) ? 0 : this.count * this.span
  }
}

export class LoopTicks {
  #resolution
  #histogram
  /** A wait that the histogram missed, ms. */
  #unseen = 0
  /** @type {TickHistogram} of the current read */
  #ticks = new TickHistogram()
  #count = 0

  /** @param {number} [resolution] ms */
  constructor(resolution = RESOLUTION_MS) {
    this.#resolution = resolution
    this.#histogram = monitorEventLoopDelay({ resolution })
    this.#histogram.enable()
  }

  /** @returns {Ticks} since the previous sample */
  sample() {
    const histogram = this.#histogram
    const ticks = (this.#ticks = new TickHistogram())
    this.#count = histogram.count
    let sum = 0
    if (this.#count > 0) {
      this.#read()
      sum = this.#count * Math.max(0, histogram.mean / NS_PER_MS - this.#resolution)
    }
    if (this.#unseen > 0) {
      ticks.record(this.#unseen)
      sum += this.#unseen
    }
    // The library's mean is more exact than the middles of buckets.
    ticks.sum = sum
    histogram.reset()
    this.#watchUnseen()
    return ticks.toTicks()
  }

  /**
   * The library's histogram gives percentiles but no buckets, so waits are read by rank: the most uncertain gap is
   * bisected first, a gap between two nearly equal waits not at all.
   */
  #read() {
    const n = this.#count
    const shortest = this.#histogram.min / NS_PER_MS
    this.#record(shortest)
    if (n === 1) return
    /** @type {Gap[]} */
    const gaps = []
    let low = { rank: 1, interval: shortest }
    for (const percent of PERCENTILES) {
      const rank = Math.ceil((percent / 100) * n)
      if (rank <= low.rank || rank >= n) continue
      const high = this.#readRank(rank)
      gaps.push(new Gap(low, high))
      low = high
    }
    const high = { rank: n, interval: this.#histogram.max / NS_PER_MS }
    this.#record(high.interval)
    gaps.push(new Gap(low, high))
    for (let reads = 0; reads < MAX_READS; reads++) {
      let widest = 0
      for (let i = 1; i < gaps.length; i++) if (gaps[i].weight > gaps[widest].weight) widest = i
      const { low, high, weight } = gaps[widest]
      if (weight === 0) break
      const middle = this.#readRank((low.rank + high.rank) >> 1)
      gaps[widest] = new Gap(low, middle)
      gaps.push(new Gap(middle, high))
    }
    for (const gap of gaps) this.#fill(gap)
  }

  /** @param {number} rank from 1 @returns {Point} */
  #readRank(rank) {
    const interval = this.#histogram.percentile((100 * rank) / this.#count) / NS_PER_MS
    this.#record(interval)
    return { rank, interval }
  }

  /** Spreads the values that were not read evenly over the gap. @param {Gap} gap */
  #fill({ low: { interval }, count, span, weight }) {
    if (weight === 0) return this.#record(interval + span / 2, count)
    this.#record(interval + span / 4, count >> 1)
    this.#record(interval + (span * 3) / 4, (count + 1) >> 1)
  }

  /**
   * The histogram holds intervals: those of an idle loop equal the resolution.
   * @param {number} interval ms
   * @param {number} [times]
   */
  #record(interval, times = 1) {
    if (times > 0) this.#ticks.record(Math.max(0, interval - this.#resolution), times)
  }

  /** A reset histogram starts with its next tick and would miss a long turn right after it. */
  #watchUnseen() {
    this.#unseen = 0
    const due = performance.now() + this.#resolution
    setTimeout(() => {
      const late = performance.now() - due
      if (late > this.#resolution) this.#unseen = late
    }, this.#resolution).unref()
  }

  stop() {
    this.#histogram.disable()
  }
}
