import { performance } from 'node:perf_hooks'
import { timeToMultiple } from '../base/timers.js'
import { SleepingGrid } from './sleeping-grid.js'
import { TickHistogram } from './tick-histogram.js'

/** @import { Ticks } from './schema.js' */

/** Distance of two points of the grid, ms. */
const RESOLUTION_MS = 10
/** Points after which an awake grid decides whether it sleeps. */
const CALM_POINTS = 50
/** Share of the time that an idle loop may be active. */
const CALM_SHARE = 0.25
/** The sleeping grid measures the delay of one timer so often, at multiples of this on the clock, ms. */
const REST_MS = 250
/** Turns of the loop in that time that wake the grid: measuring more would cost more than its timer. */
const MAX_TURNS = 250

/**
 * Event-loop delay: how late events come, at the points of a grid.
 *
 *   awake    |    |    |         |    |      a timer for each point: its delay is how late it comes
 *   asleep   .    .    .  [turn  .  ]    :   no such timer; the delay of a point follows from the turns of the loop
 *
 * A timer for each point is most of what an idle process costs, so the grid sleeps while the loop is idle. Then an
 * unref'd immediate measures each turn: it runs after the next wake-up of the loop, and causes none. Every 250 ms a
 * timer measures what no turn can tell, the delay of a wake-up. A busy loop, and a process that did not run for longer,
 * wake the grid.
 */
export class LoopTicks {
  #resolution
  #ticks = new TickHistogram()
  #sleeping
  #asleep = false
  /** Time of the last look, ms of `performance.now()`. */
  #seen = performance.now()
  /** Time that the loop had slept until then, ms. */
  #slept = performance.nodeTiming.idleTime
  /** Awake: points, asleep: turns of the loop, since the grid has decided whether it sleeps. */
  #count = 0
  /** ms in which the loop was active, and longest delay in ms, since then. */
  #active = 0
  #longest = 0
  #onTurn = () => this.#turn()
  /** @type {NodeJS.Timeout} */
  #timer

  /** @param {number} [resolution] ms */
  constructor(resolution = RESOLUTION_MS) {
    this.#resolution = resolution
    this.#sleeping = new SleepingGrid(resolution)
    this.#timer = this.#startTimer(resolution)
  }

  /** @param {number} wait ms */
  #startTimer(wait) {
    clearTimeout(this.#timer)
    return setTimeout(() => (this.#asleep ? this.#rest() : this.#point()), wait).unref()
  }

  /** @returns {Ticks} since the previous sample */
  sample() {
    if (this.#asleep) {
      this.#settle()
      if (this.#sleeping.measured) this.#sleeping.flush(this.#ticks)
    }
    const ticks = this.#ticks
    this.#ticks = new TickHistogram()
    return ticks.toTicks()
  }

  /** Updates `#seen` and `#slept`. @returns {number} ms since the last look in which the loop did not sleep */
  #look() {
    const now = performance.now()
    const slept = performance.nodeTiming.idleTime
    const active = now - this.#seen - (slept - this.#slept)
    this.#seen = now
    this.#slept = slept
    return Math.max(0, active)
  }

  /** Awake: the timer of a point. */
  #point() {
    const before = this.#seen
    this.#active += this.#look()
    const delay = Math.max(0, this.#seen - before - this.#resolution)
    this.#ticks.record(delay)
    this.#longest = Math.max(this.#longest, delay)
    if (++this.#count === CALM_POINTS) {
      if (this.#isIdle(CALM_POINTS * this.#resolution)) return this.#sleep()
      this.#startCount()
    }
    this.#timer.refresh()
  }

  #startCount() {
    this.#count = this.#active = this.#longest = 0
  }

  /** @param {number} time ms since the start of the count */
  #isIdle(time) {
    return this.#active <= CALM_SHARE * time && this.#longest <= REST_MS
  }

  #sleep() {
    this.#asleep = true
    this.#sleeping.start(this.#seen)
    this.#startRest()
    setImmediate(this.#onTurn).unref()
  }

  #startRest() {
    const wait = timeToMultiple(REST_MS)
    this.#startCount()
    this.#sleeping.expect(this.#seen + wait)
    this.#timer = this.#startTimer(wait)
  }

  #wake() {
    this.#sleeping.flush(this.#ticks)
    this.#asleep = false
    this.#startCount()
    this.#timer = this.#startTimer(this.#resolution)
  }

  /** Asleep: after the events of each turn of the loop. */
  #turn() {
    if (!this.#asleep) return
    this.#count++
    if (this.#settle()) setImmediate(this.#onTurn).unref()
    else this.#wake()
  }

  /** Asleep: the timer that measures the delay of a wake-up. */
  #rest() {
    if (!this.#settle()) return this.#wake()
    this.#sleeping.flush(this.#ticks)
    this.#startRest()
  }

  /** Finds the delays of the points since the last look. @returns {boolean} whether the loop is idle */
  #settle() {
    const active = this.#look()
    this.#active += active
    this.#longest = this.#sleeping.turn(this.#seen, active, this.#ticks)
    return this.#count <= MAX_TURNS && this.#isIdle(REST_MS)
  }

  stop() {
    this.#asleep = false
    clearTimeout(this.#timer)
  }
}
