import { runSlice } from './slices.js'

const BITS = 6
const SLOTS = 1 << BITS
const LEVELS = 4
const SPAN = 1 << (BITS * LEVELS)

/** Base class of objects with a deadline: three fields, and no Node.js timer, closure or Map entry. */
export class Timer {
  // Written by the wheel only.
  /** @type {Timer | null} */
  nextTimer = null
  /** @type {Timer | null} */
  previousTimer = null
  /** Ticks since the start of the wheel. */
  dueTick = 0

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
 * Hierarchical timer wheel: one interval for any number of deadlines, stopped while there are none.
 *
 *   level 0   [0][1][2] ... [63]   a tick per slot         called when its tick comes
 *                 ^ now
 *   level 1   [0][1][2] ... [63]   64 ticks per slot       moved down a level when its first tick comes
 *   level 2   [0][1][2] ... [63]   64 x 64 ticks
 *   level 3   [0][1][2] ... [63]   64 x 64 x 64 ticks; later timers wait in its last slot
 *
 * With ticks of 100 ms the levels reach 6.4 s, 7 min, 7 h and 19 days. Timers are never early and less than two
 * ticks late. Many timers of one tick are called in slices.
 */
export class TimerWheel {
  #levels = Array.from({ length: LEVELS }, () => Array.from({ length: SLOTS }, () => new Slot()))
  #tickMs
  #clock
  #startedAt
  /** Tick whose timers were or are being called. */
  #currentTick = 0
  #size = 0
  #started = false
  /** @type {NodeJS.Timeout | null} */
  #interval = null
  /** Timers up to this tick are due. */
  #lastTick = 0
  #next = () => this.#advanceOrCall()
  #unfinished = false
  #continue = () => {
    this.#unfinished = false
    this.tick()
  }

  /** @param {number} tickMs @param {() => number} clock unix ms; if set back, delays all timers */
  constructor(tickMs, clock) {
    this.#tickMs = tickMs
    this.#clock = clock
    this.#startedAt = clock()
  }

  get size() {
    return this.#size
  }

  /** Starts ticking, without keeping the process alive. If not started, the owner calls `tick`. */
  start() {
    this.#started = true
    if (this.#size > 0) this.#wake()
  }

  #wake() {
    this.#interval ??= setInterval(() => this.tick(), this.#tickMs).unref()
  }

  /** Schedules or reschedules a timer. @param {Timer} timer @param {number} at unix ms */
  schedule(timer, at) {
    if (timer.armed) unlink(timer)
    else if (this.#size++ === 0 && this.#started) this.#wake()
    timer.dueTick = Math.max(this.#currentTick + 1, this.#tickOf(at))
    this.#place(timer)
  }

  /**
   * For frequently extended deadlines: keeps an earlier due time, and `onTimer` schedules the timer again.
   * @param {Timer} timer @param {number} at unix ms
   */
  scheduleNoLater(timer, at) {
    if (!timer.armed || this.#tickOf(at) < timer.dueTick) this.schedule(timer, at)
  }

  /** First tick not before `at`. @param {number} at unix ms */
  #tickOf(at) {
    return Math.ceil((at - this.#startedAt) / this.#tickMs)
  }

  /** @param {Timer} timer scheduled or not */
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

  /** Calls the due timers, in slices. @returns {boolean} whether more slices follow */
  tick() {
    this.#lastTick = Math.floor((this.#clock() - this.#startedAt) / this.#tickMs)
    if (runSlice(this.#next)) {
      if (!this.#unfinished) setImmediate(this.#continue)
      this.#unfinished = true
      return true
    }
    if (this.#size === 0 && this.#interval !== null) {
      clearInterval(this.#interval)
      this.#interval = null
    }
    return false
  }

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

  /** Moves to the next tick, and skips empty slots: many after a long sleep. @param {number} lastTick */
  #advance(lastTick) {
    let ticks = 1
    for (const slots of this.#levels) {
      if (!slots.every(slot => slot.empty)) break
      ticks *= SLOTS
    }
    this.#currentTick = Math.min(lastTick, (Math.floor(this.#currentTick / ticks) + 1) * ticks)
  }
}

/**
 * As `setInterval`, without keeping the process alive. Calls are due at multiples of `ms` on the wall clock, so that
 * intervals share wake-ups. The first call, and the next after a clock change, comes after 0.2 to 1.2 periods.
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
 * ms until the next wall-clock multiple of `ms`; skips one less than a fifth away: the timer was early or late.
 * @param {number} ms @param {number} [now] unix ms
 */
export function timeToMultiple(ms, now = Date.now()) {
  const rest = ms - (now % ms)
  return rest < ms / 5 ? rest + ms : rest
}
