import { SlicedWork } from '../../base/slices.js'

/** @import { Session } from './session.js' */

/** Maximum number of slots: each has a small part of the sessions, and is pinged in one go. */
const MAX_SLOTS = 256
/** Pings of one wake-up on average, unless a single slot has more: some ms of work. */
const MAX_PINGS = 500
/**
 * Pings and pong checks are late by less than a wake-up's time: at most this share of the interval, and this many ms.
 */
const WAKE_SHARE = 1 / 25
const MAX_WAKE_MS = 1000
const MIN_TICK_MS = 10
/** Interval of the slots without pings. */
const UNUSED_SPAN_MS = 10_000
/** More does not count as passed while the event loop stands still: pongs of that time have not been read. */
const MAX_STALL_MS = 1000

/**
 * Pings by slot, without a timer for each session. The slots of one interval are pinged one after the other; the
 * sessions of a slot that have not sent a pong `pongTimeout` after their ping are closed.
 *
 *   slots   [0][1][2] ... [n-1]      n ticks = ping interval
 *                    ^ next to be pinged
 *            ^  ^ pinged: their pongs are due
 *
 * One wake-up of the worker pings several slots while they are small. Then the pongs of clients that share a machine or
 * a connection to a proxy come together too: with many workers on few cores, the wake-ups cost more than the pings.
 *
 * Every connected session is in a slot, so this is also the list of connected sessions. No TimerWheel: sessions share
 * one interval and never leave their slot, where a Timer would be scheduled again for each ping and each pong timeout;
 * and a wall clock that is set back stops the wheel, but no pings.
 */
export class Heartbeat {
  /** @type {Session[][]} */
  #slots
  /** When each slot was last pinged, on the clock of `#time`. */
  #pingedAt
  /** Next slot to be pinged. */
  #next = 0
  /** When that is due. */
  #nextAt
  /** Slots before `#next` whose pongs are not checked yet. */
  #unchecked = 0
  /** ms passed, without most of the time in which the event loop stood still. */
  #time = 0
  #clock
  /** `#clock` when `#time` was last updated. */
  #timeAt
  #pongTimeout
  #work = new SlicedWork(() => this.#step())
  /** Sessions in the slots. */
  #size = 0
  #started = false
  /** @type {NodeJS.Timeout | undefined} */
  #timer

  /**
   * @param {number} interval ms; 0 = no pings @param {number} pongTimeout ms, less than the interval
   * @param {() => number} [clock] ms, monotonic
   */
  constructor(interval, pongTimeout, clock = () => performance.now()) {
    const span = interval || UNUSED_SPAN_MS
    /** ms between two slots. */
    this.tickMs = Math.max(MIN_TICK_MS, Math.round(span / MAX_SLOTS))
    const count = Math.max(2, Math.round(span / this.tickMs))
    this.enabled = interval > 0
    this.#slots = Array.from({ length: count }, () => /** @type {Session[]} */ ([]))
    this.#pingedAt = new Float64Array(count)
    this.#pongTimeout = pongTimeout
    this.#nextAt = this.tickMs
    this.#clock = clock
    this.#timeAt = clock()
  }

  /** Ticks by itself from now on, while there are sessions. Otherwise the owner calls `tick`. */
  start() {
    this.#started = true
    if (this.#size > 0) this.#wake()
  }

  #wake() {
    // Without sessions no time has passed.
    this.#timeAt = this.#clock()
    if (this.#started && this.enabled && this.#timer === undefined) this.#wait()
  }

  #wait() {
    this.#timer = setTimeout(() => {
      this.#wait()
      this.tick()
    }, this.wakeMs)
  }

  #sleep() {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  /** ms until the next wake-up: the longer, the fewer sessions there are. */
  get wakeMs() {
    const count = this.#slots.length
    const slots = Math.min((MAX_PINGS * count) / this.#size, count * WAKE_SHARE, MAX_WAKE_MS / this.tickMs)
    return Math.max(1, Math.floor(slots)) * this.tickMs
  }

  /** First ping after 50 to 100 % of the interval. @param {Session} session */
  add(session) {
    if (this.#size++ === 0) this.#wake()
    const count = this.#slots.length
    const ahead = Math.ceil(count / 2) + Math.floor(Math.random() * (Math.floor(count / 2) + 1))
    const slot = (this.#next - 1 + ahead) % count
    session.slot = slot
    session.slotIndex = this.#slots[slot].push(session) - 1
  }

  /** @param {Session} session */
  remove(session) {
    if (session.slotIndex < 0) return
    const slot = this.#slots[session.slot]
    const last = /** @type {Session} */ (slot.pop())
    if (last !== session) {
      slot[session.slotIndex] = last
      last.slotIndex = session.slotIndex
    }
    session.slotIndex = -1
    if (--this.#size === 0) this.#sleep()
  }

  /** @param {(session: Session) => void} visit must not add or remove sessions */
  forEach(visit) {
    for (const slot of this.#slots) for (let i = 0; i < slot.length; i++) visit(slot[i])
  }

  /** Pings and checks the slots that are due, in slices that begin after the reads of this turn of the event loop. */
  tick() {
    if (this.enabled) this.#work.start()
  }

  /** Whether slots that are due wait for the next slice. */
  get working() {
    return this.#work.running
  }

  /** Pings or checks one slot. @returns {boolean} false: none is due */
  #step() {
    const now = this.#clock()
    this.#time += Math.min(this.wakeMs + MAX_STALL_MS, now - this.#timeAt)
    this.#timeAt = now
    const count = this.#slots.length
    if (this.#unchecked > 0) {
      const slot = (this.#next - this.#unchecked + count) % count
      if (this.#time - this.#pingedAt[slot] >= this.#pongTimeout) {
        this.#unchecked--
        visitBackwards(this.#slots[slot], checkPong)
        return true
      }
    }
    // A late ping whose pongs are not due yet delays the next one.
    if (this.#time < this.#nextAt || this.#unchecked === count) return false
    const slot = this.#next
    this.#pingedAt[slot] = this.#time
    this.#nextAt += this.tickMs
    this.#next = (slot + 1) % count
    this.#unchecked++
    visitBackwards(this.#slots[slot], ping)
    return true
  }
}

/**
 * Backwards: when a session closes, the last one, which is already visited, moves to its place.
 * @param {Session[]} slot @param {(session: Session) => void} visit
 */
function visitBackwards(slot, visit) {
  for (let i = slot.length - 1; i >= 0; i--) if (i < slot.length) visit(slot[i])
}

/** @param {Session} session */
const checkPong = session => session.checkPong()
/** @param {Session} session */
const ping = session => session.ping()
