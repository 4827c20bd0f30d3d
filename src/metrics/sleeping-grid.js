/** @import { TickHistogram } from './tick-histogram.js' */

/**
 * The points of a grid without timers. Their delays follow from the turns of the event loop: a point while the loop
 * slept has the delay of a wake-up, a point within a turn waits for its end.
 *
 *   loop     ______________[ turn ]__________[turn]____
 *   grid     .    .    .    .------>    .    .    .         the next point comes a resolution after the end
 *
 * All times are ms of one monotonic clock.
 */
export class SleepingGrid {
  #resolution
  /** Time of the next point. */
  #next = 0
  /** Points while the loop slept that are not recorded. */
  #points = 0
  /** When a timer is due; Infinity: this has passed. */
  #due = Infinity
  /** How late the process ran for the last timer. */
  #delay = 0

  /** @param {number} resolution ms between two points */
  constructor(resolution) {
    this.#resolution = resolution
  }

  /** @param {number} last time of the last point that had a timer */
  start(last) {
    this.#next = last + this.#resolution
  }

  /** A timer is set to measure the delay of a wake-up. @param {number} due */
  expect(due) {
    this.#due = due
  }

  /** Whether the timer was due: `flush` knows the delay of the points. */
  get measured() {
    return this.#due === Infinity
  }

  /**
   * The loop has slept, then it was active until now. Timers run after the events of a turn and count for the next one.
   * @param {number} now @param {number} active ms of the time since the previous call @param {TickHistogram} ticks
   * @returns {number} last measured delay of a wake-up, ms
   */
  turn(now, active, ticks) {
    const wokeAt = now - active
    if (this.#due <= now) {
      // In the middle of a turn, it is the turn that delays the timer; a wake-up was not later than all of it.
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
   * The timer is over: records the points while the loop slept. With a delay there are fewer of them, as of timers that
   * are set again when they come; so a process that was stopped has one point with the delay, not one for each 10 ms.
   * @param {TickHistogram} ticks
   */
  flush(ticks) {
    const share = this.#resolution / (this.#resolution + this.#delay)
    if (this.#points > 0) ticks.record(this.#delay, Math.max(1, Math.round(this.#points * share)))
    this.#points = 0
    // Until the next measurement: a long delay is not told twice.
    this.#delay = Math.min(this.#delay, this.#resolution)
  }
}
