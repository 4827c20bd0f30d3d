import { monitorEventLoopDelay } from 'node:perf_hooks'
import { bucketOf, TickHistogram } from './tick-histogram.js'

/** The grid on which the wait for the event loop is measured, ms: each look wakes the process, which is most of what all figures cost. */
const GRID_MS = 10
const NS_PER_MS = 1e6
/** Where the ranks are first cut: what is told is looked at itself, and not guessed from its neighbours. */
const CUTS = Object.freeze([50, 90, 99])
/** A look takes some µs. */
const MAX_LOOKS = 16

/**
 * @typedef {{rank: number, interval: number}} Place an interval between two looks of the library, ms, and how many are not longer
 */

/** What lies between two places, without them. */
class Gap {
  /**
   * @param {Place} low
   * @param {Place} high
   */
  constructor(low, high) {
    this.low = low
    this.high = high
    this.count = high.rank - low.rank - 1
    this.span = high.interval - low.interval
    /** How much is not known of it. */
    this.weight = bucketOf(low.interval) === bucketOf(high.interval) ? 0 : this.count * this.span
  }
}

/** The wait for this process's event loop, on a grid. */
export class LoopTicks {
  #grid
  #histogram
  /** What the histogram does not see, ms. */
  #unseen = 0
  /** @type {TickHistogram} what is being read */
  #ticks = new TickHistogram()
  #n = 0

  /** @param {number} [grid] ms */
  constructor(grid = GRID_MS) {
    this.#grid = grid
    this.#histogram = monitorEventLoopDelay({ resolution: grid })
    this.#histogram.enable()
  }

  /** @returns {import('./schema.js').Ticks} since the last sample */
  sample() {
    const histogram = this.#histogram
    const ticks = (this.#ticks = new TickHistogram())
    this.#n = histogram.count
    let sum = 0
    if (this.#n > 0) {
      this.#read()
      sum = this.#n * Math.max(0, histogram.mean / NS_PER_MS - this.#grid)
    }
    if (this.#unseen > 0) {
      ticks.record(this.#unseen)
      sum += this.#unseen
    }
    // The library knows it better than the middles of buckets.
    ticks.sum = sum
    histogram.reset()
    this.#watchUnseen()
    return ticks.toTicks()
  }

  /**
   * The library's histogram tells percentiles, but not what it is made of. So the waits are found by their ranks: what lies between two
   * that are about the same need not be looked at, and the widest gaps are looked into first.
   */
  #read() {
    const n = this.#n
    const shortest = this.#histogram.min / NS_PER_MS
    this.#record(shortest)
    if (n === 1) return
    /** @type {Gap[]} */
    const gaps = []
    let low = { rank: 1, interval: shortest }
    for (const percent of CUTS) {
      const rank = Math.ceil((percent / 100) * n)
      if (rank <= low.rank || rank >= n) continue
      const high = this.#look(rank)
      gaps.push(new Gap(low, high))
      low = high
    }
    const high = { rank: n, interval: this.#histogram.max / NS_PER_MS }
    this.#record(high.interval)
    gaps.push(new Gap(low, high))
    for (let looks = 0; looks < MAX_LOOKS; looks++) {
      let widest = 0
      for (let i = 1; i < gaps.length; i++) if (gaps[i].weight > gaps[widest].weight) widest = i
      const { low, high, weight } = gaps[widest]
      if (weight === 0) break
      const middle = this.#look((low.rank + high.rank) >> 1)
      gaps[widest] = new Gap(low, middle)
      gaps.push(new Gap(middle, high))
    }
    for (const gap of gaps) this.#fill(gap)
  }

  /**
   * @param {number} rank from 1
   * @returns {Place}
   */
  #look(rank) {
    const interval = this.#histogram.percentile((100 * rank) / this.#n) / NS_PER_MS
    this.#record(interval)
    return { rank, interval }
  }

  /** What was not looked at lies evenly between its neighbours, as far as is known. @param {Gap} gap */
  #fill({ low: { interval }, count, span, weight }) {
    if (weight === 0) return this.#record(interval + span / 2, count)
    this.#record(interval + span / 4, count >> 1)
    this.#record(interval + (span * 3) / 4, (count + 1) >> 1)
  }

  /**
   * The histogram holds whole intervals between two looks, so an idle loop shows the grid itself.
   * @param {number} interval ms
   * @param {number} [times]
   */
  #record(interval, times = 1) {
    if (times > 0) this.#ticks.record(Math.max(0, interval - this.#grid), times)
  }

  /** A reset histogram begins with its next tick, so that a long turn right behind the reset would go unnoticed. */
  #watchUnseen() {
    this.#unseen = 0
    const due = performance.now() + this.#grid
    setTimeout(() => {
      const late = performance.now() - due
      if (late > this.#grid) this.#unseen = late
    }, this.#grid).unref()
  }

  stop() {
    this.#histogram.disable()
  }
}
