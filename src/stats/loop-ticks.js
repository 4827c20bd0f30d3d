import { monitorEventLoopDelay } from 'node:perf_hooks'
import { bucketOf, TickHistogram } from './tick-histogram.js'

/** The grid on which the wait for the event loop is measured, ms. */
const RESOLUTION_MS = 10
const NS_PER_MS = 1e6
/** Where the ranks are first cut: what is told is looked at itself, and not guessed from its neighbours. */
const CUTS = Object.freeze([50, 90, 99])

/** The wait for this process's event loop, on a 10 ms grid. */
export class LoopTicks {
  #histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  /** What the histogram does not see, ms. */
  #unseen = 0
  /** @type {TickHistogram} what is being read */
  #ticks = new TickHistogram()
  #n = 0

  constructor() {
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
      sum = this.#n * Math.max(0, histogram.mean / NS_PER_MS - RESOLUTION_MS)
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
   * The library's histogram tells percentiles, but not what it is made of. So the waits are found by their ranks: what lies
   * between two that are about the same need not be looked at. A look takes some µs.
   */
  #read() {
    const n = this.#n
    let from = 1
    let interval = this.#interval(1)
    this.#record(interval, 1)
    for (const percent of CUTS) {
      const rank = Math.ceil((percent / 100) * n)
      if (rank <= from || rank >= n) continue
      const found = this.#interval(rank)
      this.#between(from, interval, rank, found)
      this.#record(found, 1)
      from = rank
      interval = found
    }
    if (from === n) return
    const longest = this.#histogram.max / NS_PER_MS
    this.#between(from, interval, n, longest)
    this.#record(longest, 1)
  }

  /**
   * @param {number} rank from 1
   * @returns {number} ms
   */
  #interval(rank) {
    return this.#histogram.percentile((100 * rank) / this.#n) / NS_PER_MS
  }

  /**
   * Records what lies between two ranks, without them.
   * @param {number} low rank
   * @param {number} shorter its interval, ms
   * @param {number} high rank
   * @param {number} longer its interval, ms
   */
  #between(low, shorter, high, longer) {
    if (high - low < 2) return
    if (bucketOf(shorter) === bucketOf(longer)) {
      this.#record((shorter + longer) / 2, high - low - 1)
      return
    }
    const middle = (low + high) >> 1
    const interval = this.#interval(middle)
    this.#between(low, shorter, middle, interval)
    this.#record(interval, 1)
    this.#between(middle, interval, high, longer)
  }

  /**
   * The histogram holds whole intervals between two looks, so an idle loop shows the grid itself.
   * @param {number} interval ms
   * @param {number} times
   */
  #record(interval, times) {
    this.#ticks.record(Math.max(0, interval - RESOLUTION_MS), times)
  }

  /** A reset histogram begins with its next tick, so that a long turn right behind the reset would go unnoticed. */
  #watchUnseen() {
    this.#unseen = 0
    const due = performance.now() + RESOLUTION_MS
    setTimeout(() => {
      const late = performance.now() - due
      if (late > RESOLUTION_MS) this.#unseen = late
    }, RESOLUTION_MS).unref()
  }

  stop() {
    this.#histogram.disable()
  }
}
