import { performance } from 'node:perf_hooks'
import { timeToMultiple } from '../base/timers.js'
import { SleepingGrid } from './sleeping-grid.js'
import { TickHistogram } from './tick-histogram.js'

/** @import { Ticks } from './schema.js' */

/** Interval of points, ms. */
const RESOLUTION_MS = 10
/** Points before an awake grid may sleep. */
const CALM_POINTS = 50
/** Active share of an idle loop. */
const CALM_SHARE = 0.25
/** Interval of the sleeping grid's timer, at multiples on the clock, ms. */
const REST_MS = 250
/** More turns in that time wake the grid: measuring them would cost more than its timer. */
const MAX_TURNS = 250

/**
 * Event-loop delay: lateness of events, at the points of a grid.
 *
 *   awake    |    |    |         |    |      a timer for each point measures its delay
 *   asleep   .    .    .  [turn  .  ]    :   no such timer; delays follow from the turns of the loop
 *
 * A timer for each point is most of the cost of an idle process, so the grid sleeps while the loop is idle. Then an
 * unref'd immediate measures each turn, without causing one, and a timer every 250 ms measures the delay of a wake-up.
 * A busy loop, or a process suspended for longer, wakes the grid.
 */
export class LoopTicks {
  #resolution
  #ticks = new TickHistogram()
  #sleeping
  #asleep = false
  /** Last `performance.now()`, ms. */
  #seen = performance.now()
  /** Idle time until then, ms. */
  #slept = performance.nodeTiming.idleTime
  /** Points (awake) or turns (asleep) since the last decision. */
  #count = 0
  /** Active time and longest delay since then, ms. */
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

  /** Since the previous sample. @returns {Ticks} */
  sample() {
    if (this.#asleep) {
      this.#settle()
      if (this.#sleeping.measured) this.#sleeping.flush(this.#ticks)
    }
    const ticks = this.#ticks
    this.#ticks = new TickHistogram()
    return ticks.toTicks()
  }

  /** Returns the active ms since the last call. */
  #look() {
    const now = performance.now()
    const slept = performance.nodeTiming.idleTime
    const active = now - this.#seen - (slept - this.#slept)
    this.#seen = now
    this.#slept = slept
    return Math.max(0, active)
  }

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

  /** @param {number} time ms */
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

  /** Asleep, after each turn. */
  #turn() {
    if (!this.#asleep) return
    this.#count++
    if (this.#settle()) setImmediate(this.#onTurn).unref()
    else this.#wake()
  }

  /** Asleep: measures a wake-up. */
  #rest() {
    if (!this.#settle()) return this.#wake()
    this.#sleeping.flush(this.#ticks)
    this.#startRest()
  }

  /** Records the delays of points since the last call; returns whether the loop is idle. */
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
