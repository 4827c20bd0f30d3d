// Vital signs of one process. Each class looks at what went by since it was asked last; machine.js has those of the machine.

import { monitorEventLoopDelay } from 'node:perf_hooks'

/** The grid on which the wait for the event loop is measured, ms. */
const RESOLUTION_MS = 10
const NS_PER_MS = 1e6

/**
 * @typedef {object} DelaySample how long events waited for the event loop, ms
 * @property {number} mean
 * @property {number} p90
 * @property {number} max
 */

/** The wait for this process's event loop, on a 10 ms grid. */
export class LoopDelay {
  #histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  /** What the histogram does not see, ms. */
  #unseen = 0

  constructor() {
    this.#histogram.enable()
  }

  /** @returns {DelaySample} since the last sample */
  sample() {
    const histogram = this.#histogram
    // The histogram holds whole intervals between two looks, so an idle loop shows the grid itself.
    const wait = (/** @type {number} */ ns) => Math.max(0, ns / NS_PER_MS - RESOLUTION_MS)
    const empty = histogram.count === 0
    const sample = {
      mean: empty ? 0 : wait(histogram.mean),
      p90: empty ? 0 : wait(histogram.percentile(90)),
      max: Math.max(empty ? 0 : wait(histogram.max), this.#unseen),
    }
    histogram.reset()
    this.#watchUnseen()
    return sample
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

/** A counter that only grows, seen as a rate. */
export class Rate {
  #count
  #clock
  #last
  #at

  /**
   * @param {() => number} count
   * @param {() => number} clock ms
   */
  constructor(count, clock) {
    this.#count = count
    this.#clock = clock
    this.#last = count()
    this.#at = clock()
  }

  /** @returns {number} a second, since the last sample */
  sample() {
    const count = this.#count()
    const now = this.#clock()
    const rate = now > this.#at ? ((count - this.#last) * 1000) / (now - this.#at) : 0
    this.#last = count
    this.#at = now
    return rate
  }
}
