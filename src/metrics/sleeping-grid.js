/** @import { TickHistogram } from './tick-histogram.js' */

/**
 * A grid without timers. The turns of the event loop determine the delay of a point: while asleep that of the
 * wake-up, within a turn the time to its end.
 *
 *   loop     ______________[ turn ]__________[turn]____
 *   grid     .    .    .    .------>    .    .    .         the next point comes a resolution after the end
 *
 * All times are ms of one monotonic clock.
 */
export class SleepingGrid {
  #resolution
  #next = 0
  /** Unrecorded, while the loop slept. */
  #points = 0
  /** Due time of a timer; Infinity: passed. */
  #due = Infinity
  /** Delay of the last timer. */
  #delay = 0

  /** @param {number} resolution ms */
  constructor(resolution) {
    this.#resolution = resolution
  }

  /** @param {number} last point with a timer */
  start(last) {
    this.#next = last + this.#resolution
  }

  /** A timer measures a wake-up. @param {number} due */
  expect(due) {
    this.#due = due
  }

  /** Whether `flush` has a known delay. */
  get measured() {
    return this.#due === Infinity
  }

  /**
   * The loop slept, then was active until now. Timers run after the events of a turn and count for the next one.
   * @param {number} now @param {number} active since the previous call @param {TickHistogram} ticks
   * @returns {number} last measured delay
   */
  turn(now, active, ticks) {
    const wokeAt = now - active
    if (this.#due <= now) {
      // A turn delays the timers due within it, so the wake-up delay is at most that delay.
      this.#delay = this.#due <= wokeAt ? wokeAt - this.#due : Math.min(this.#delay, now - this.#due)
      this.#due = Infinity
    }
    const points = Math.floor((wokeAt - this.#next) / this.#resolution) + 1
    if (points > 0) {
      this.#points += points
      this.#next += points * this.#resolution
    }
    if (this.#next <= now) {
      ticks.record(now - this.#next)
      this.#next = now + this.#resolution
    }
    return this.#delay
  }

  /**
   * Records the points while the loop slept. A delay reduces their number, as with rescheduled timers: a stopped
   * process has one point with the delay, not one per 10 ms.
   * @param {TickHistogram} ticks
   */
  flush(ticks) {
    const share = this.#resolution / (this.#resolution + this.#delay)
    if (this.#points > 0) ticks.record(this.#delay, Math.max(1, Math.round(this.#points * share)))
    this.#points = 0
    // A long delay is not recorded twice.
    this.#delay = Math.min(this.#delay, this.#resolution)
  }
}
