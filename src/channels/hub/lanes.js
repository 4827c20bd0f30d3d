import { runSlice } from '../../base/slices.js'

/** @import { Channel } from './channel.js' */
/** @import { Window } from './window.js' */

/** @typedef {{now: () => number, after: (call: () => void, ms: number) => unknown}} MonotonicClock in ms */

/** @typedef {Set<Channel>} Lane ordered by due time */

/** @type {MonotonicClock} */
export const CLOCK = Object.freeze({
  now: () => performance.now(),
  after: (/** @type {() => void} */ call, /** @type {number} */ ms) => setTimeout(call, ms).unref(),
})

/** Tolerance for timers that fire early, ms. */
const EARLY_MS = 1

/** Non-empty windows, by delay: those of one delay are due in order, so each delay needs one timer. */
export class Lanes {
  /** @type {Map<number, Lane>} by delay, ms; each has a running timer */
  #lanes = new Map()
  #flush
  #clock

  /** @param {(channel: Channel) => void} flush must remove the channel @param {MonotonicClock} [clock] */
  constructor(flush, clock = CLOCK) {
    this.#flush = flush
    this.#clock = clock
  }

  get size() {
    let size = 0
    for (const lane of this.#lanes.values()) size += lane.size
    return size
  }

  /** @param {Channel} channel @param {Window} window gets its first item */
  add(channel, window) {
    const delay = window.options.maxDelay
    let lane = this.#lanes.get(delay)
    window.dueAt = this.#clock.now() + delay
    if (lane === undefined) {
      this.#lanes.set(delay, (lane = new Set()))
      this.#arm(lane, delay, delay)
    }
    lane.add(channel)
  }

  /** @param {Channel} channel @param {Window} window */
  remove(channel, window) {
    this.#lanes.get(window.options.maxDelay)?.delete(channel)
  }

  /** @param {Lane} lane @param {number} delay of the lane @param {number} wait ms */
  #arm(lane, delay, wait) {
    this.#clock.after(() => this.#run(lane, delay), wait)
  }

  /** @param {Lane} lane @param {number} delay */
  #run(lane, delay) {
    const now = this.#clock.now() + EARLY_MS
    const unfinished = runSlice(() => {
      const [channel] = lane
      if (channel === undefined || /** @type {Window} */ (channel.window).dueAt > now) return false
      this.#flush(channel)
      return true
    })
    const [next] = lane
    if (next === undefined) this.#lanes.delete(delay)
    else if (unfinished) setImmediate(() => this.#run(lane, delay))
    else this.#arm(lane, delay, Math.max(1, /** @type {Window} */ (next.window).dueAt - this.#clock.now()))
  }
}
