import { runSlice } from './slices.js'

/** Bits of the index of a slot. */
const BITS = 6
/** Slots of a level. */
const SLOTS = 1 << BITS
const LEVELS = 4
/** Ticks that the wheel reaches ahead. */
const SPAN = 1 << (BITS * LEVELS)

/** Base class of objects with a deadline. It costs them three fields, and no Node.js timer, closure or Map entry. */
export class Timer {
  // Written by the wheel only.
  /** @type {Timer | null} */
  nextTimer = null
  /** @type {Timer | null} */
  previousTimer = null
  /** Ticks since the start of the wheel. */
  dueTick = 0

  /** Whether it is in a wheel. */
  get armed() {
    return this.nextTimer !== null
  }

  /** Called after the deadline. The timer has left the wheel and may be scheduled again. */
  onTimer() {}
}

/** Head of a slot: a circular list of timers, in the order of their scheduling. */
class Slot extends Timer {
  /** @type {Timer} */
  nextTimer = this
  /** @type {Timer} */
  previousTimer = this

  get empty() {
    return this.nextTimer === this
  }

  /** @param {Timer} timer in no list */
  add(timer) {
    const last = this.previousTimer
    timer.previousTimer = last
    timer.nextTimer = this
    last.nextTimer = this.previousTimer = timer
  }
}

/** @param {Timer} timer in a list */
function unlink(timer) {
  const next = /** @type {Timer} */ (timer.nextTimer)
  const previous = /** @type {Timer} */ (timer.previousTimer)
  next.previousTimer = previous
  previous.nextTimer = next
  timer.nextTimer = timer.previousTimer = null
}

/**
 * Hierarchical timer wheel: any number of deadlines behind one interval, which stops while there are none.
 *
 *   level 0   [0][1][2] ... [63]   a tick per slot         called when its tick comes
 *                 ^ now
 *   level 1   [0][1][2] ... [63]   64 ticks per slot       moved down a level when its first tick comes
 *   level 2   [0][1][2] ... [63]   64 x 64 ticks
 *   level 3   [0][1][2] ... [63]   64 x 64 x 64 ticks; what is beyond its end waits in its last slot
 *
 * With ticks of 100 ms the levels reach 6.4 s, 7 min, 7 h and 19 days. `schedule` and `cancel` take constant time. No
 * timer is early; it is late by less than two ticks. Work is done in slices: many timers of one tick do not block the
 * event loop.
 */
export class TimerWheel {
  #levels = Array.from({ length: LEVELS }, () => Array.from({ length: SLOTS }, () => new Slot()))
  #tickMs
  #clock
  #startedAt
  /** The tick whose timers have been called, or are being called. */
  #currentTick = 0
  #size = 0
  #started = false
  /** @type {NodeJS.Timeout | null} */
  #interval = null
  /** The tick up to which timers are due. */
  #lastTick = 0
  #next = () => this.#advanceOrCall()
  /** Whether `#continue` is due in the next turn. */
  #unfinished = false
  #continue = () => {
    this.#unfinished = false
    this.tick()
  }

  /** @param {number} tickMs @param {() => number} clock unix ms; set back, it delays all timers */
  constructor(tickMs, clock) {
    this.#tickMs = tickMs
    this.#clock = clock
    this.#startedAt = clock()
  }

  /** Timers in the wheel. */
  get size() {
    return this.#size
  }

  /** Ticks by itself from now on, without keeping the process alive. Otherwise the owner calls `tick`. */
  start() {
    this.#started = true
    if (this.#size > 0) this.#wake()
  }

  #wake() {
    this.#interval ??= setInterval(() => this.tick(), this.#tickMs).unref()
  }

  #sleep() {
    if (this.#interval !== null) clearInterval(this.#interval)
    this.#interval = null
  }

  /** Schedules a timer, or moves one that is scheduled. @param {Timer} timer @param {number} at unix ms */
  schedule(timer, at) {
    if (timer.armed) unlink(timer)
    else if (this.#size++ === 0 && this.#started) this.#wake()
    timer.dueTick = Math.max(this.#currentTick + 1, this.#tickOf(at))
    this.#place(timer)
  }

  /**
   * Schedules a timer, unless it is due earlier. For deadlines that are extended all the time: the timer is not moved,
   * and its `onTimer` schedules it again.
   * @param {Timer} timer @param {number} at unix ms
   */
  scheduleNoLater(timer, at) {
    if (!timer.armed || this.#tickOf(at) < timer.dueTick) this.schedule(timer, at)
  }

  /** The first tick that is not earlier. @param {number} at unix ms */
  #tickOf(at) {
    return Math.ceil((at - this.#startedAt) / this.#tickMs)
  }

  /** @param {Timer} timer in the wheel or not */
  cancel(timer) {
    if (!timer.armed) return
    this.#size--
    unlink(timer)
  }

  /** @param {Timer} timer in no list */
  #place(timer) {
    const ticks = timer.dueTick - this.#currentTick
    const tick = ticks < SPAN ? timer.dueTick : this.#currentTick + SPAN - 1
    let level = 0
    while (level < LEVELS - 1 && ticks >= 1 << (BITS * (level + 1))) level++
    this.#slot(level, tick).add(timer)
  }

  /** @param {number} level @param {number} tick */
  #slot(level, tick) {
    return this.#levels[level][(tick >>> (BITS * level)) & (SLOTS - 1)]
  }

  /**
   * Calls the timers that are due, in slices.
   * @returns {boolean} whether the rest follows in the next turns of the event loop
   */
  tick() {
    this.#lastTick = Math.floor((this.#clock() - this.#startedAt) / this.#tickMs)
    if (runSlice(this.#next)) {
      if (!this.#unfinished) setImmediate(this.#continue)
      this.#unfinished = true
      return true
    }
    if (this.#size === 0) this.#sleep()
    return false
  }

  /** @returns {boolean} false: no timer is due */
  #advanceOrCall() {
    if (this.#step()) return true
    if (this.#currentTick >= this.#lastTick) return false
    this.#advance(this.#lastTick)
    return true
  }

  /** Moves one timer of this tick down a level, or calls one. @returns {boolean} false: none is left */
  #step() {
    for (let level = LEVELS - 1; level >= 0; level--) {
      if (this.#currentTick % (1 << (BITS * level)) !== 0) continue
      const slot = this.#slot(level, this.#currentTick)
      if (slot.empty) continue
      const timer = slot.nextTimer
      unlink(timer)
      if (level > 0) this.#place(timer)
      else {
        this.#size--
        timer.onTimer()
      }
      return true
    }
    return false
  }

  /** To the next tick, and past empty slots: after a long sleep there are many. @param {number} lastTick */
  #advance(lastTick) {
    let ticks = 1
    for (const slots of this.#levels) {
      if (!slots.every(slot => slot.empty)) break
      ticks *= SLOTS
    }
    this.#currentTick = Math.min(lastTick, (Math.floor(this.#currentTick / ticks) + 1) * ticks)
  }
}

// Intervals that share their wake-ups. Waking a process costs more than most periodic jobs do, so jobs whose periods
// are multiples of one another run together, at multiples of their period on the wall clock.

/**
 * As `setInterval`, without keeping the process alive. The first call comes after 0.2 to 1.2 periods, and so does the next
 * one when the wall clock was set: not for counts that belong to a whole period.
 * @param {() => void} call @param {number} ms
 * @returns {() => void} stops it
 */
export function setAlignedInterval(call, ms) {
  /** @type {NodeJS.Timeout | undefined} */
  let timer
  const wait = () => {
    timer = setTimeout(run, timeToMultiple(ms)).unref()
  }
  const run = () => {
    wait()
    call()
  }
  wait()
  return () => clearTimeout(timer)
}

/**
 * ms until the wall clock shows a multiple of `ms`. A multiple less than a fifth of `ms` away is left out: the timer for
 * it was early by less than a millisecond, or the one before it came late.
 * @param {number} ms @param {number} [now] unix ms
 */
export function timeToMultiple(ms, now = Date.now()) {
  const rest = ms - (now % ms)
  return rest < ms / 5 ? rest + ms : rest
}
