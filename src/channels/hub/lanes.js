import { runSlice } from '../../base/slices.js'

/** @import { Channel } from './channel.js' */
/** @import { Window } from './window.js' */

/**
 * @typedef {object} MonotonicClock
 * @property {() => number} now ms
 * @property {(call: () => void, ms: number) => unknown} after calls once, after this time
 */

/** @typedef {Set<Channel>} Lane the first one is due first */

/** @type {MonotonicClock} */
const CLOCK = Object.freeze({
  now: () => performance.now(),
  after: (/** @type {() => void} */ call, /** @type {number} */ ms) => setTimeout(call, ms).unref(),
})

/** A timer may fire so much before its time, ms. */
const EARLY_MS = 1

/**
 * Windows with items by their delay. Windows of one delay are due in the order of their first items, so that each delay
 * needs one timer, and none without windows. Work is done in slices: many windows that are due together do not block
 * the event loop.
 */
export class Lanes {
  /** @type {Map<number, Lane>} by delay, ms; one runs its timer as long as it is here */
  #lanes = new Map()
  #flush
  #clock

  /** @param {(channel: Channel) => void} flush must remove the channel @param {MonotonicClock} [clock] */
  constructor(flush, clock = CLOCK) {
    this.#flush = flush
    this.#clock = clock
  }

  /** Windows with items. */
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
