import { SlicedWork } from '../../base/slices.js'

/** @import { Session } from './session.js' */

/** Approximate maximum: the ticks are rounded. */
const MAX_SLOTS = 256
/** Maximum average pings per wake-up, unless one slot has more: some ms of work. */
const MAX_PINGS = 500
/** Maximum delay of pings and pong checks by batched wake-ups: share of the interval, and ms. */
const WAKE_SHARE = 1 / 25
const MAX_WAKE_MS = 1000
const MIN_TICK_MS = 10
const UNUSED_SPAN_MS = 10_000
/** Counted part of an event-loop stall, during which pongs are not read. */
const MAX_STALL_MS = 1000

/**
 * Pings sessions by slot, without a timer per session. Closes sessions without a pong `pongTimeout` after the ping.
 *
 *   slots   [0][1][2] ... [n-1]      n ticks = ping interval
 *                    ^ next to ping
 *            ^  ^ pinged: pongs are due
 *
 * A wake-up pings several small slots: with many workers on few cores, wake-ups cost more than pings.
 *
 * All connected sessions are in a slot. A TimerWheel would need a timer per ping and pong, and stops when the wall
 * clock is set back.
 */
export class Heartbeat {
  /** @type {Session[][]} */
  #slots
  /** Last ping of each slot, in `#time`. */
  #pingedAt
  /** The same, in `#clock`. */
  #sentAt
  #next = 0
  #nextAt
  /** Pinged slots before `#next` with unchecked pongs. */
  #unchecked = 0
  /** ms, without most of the event-loop stalls. */
  #time = 0
  #clock
  #timeAt
  #pongTimeout
  #work = new SlicedWork(() => this.#step())
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
    this.tickMs = Math.max(MIN_TICK_MS, Math.round(span / MAX_SLOTS))
    const count = Math.max(2, Math.round(span / this.tickMs))
    this.enabled = interval > 0
    this.#slots = Array.from({ length: count }, () => /** @type {Session[]} */ ([]))
    this.#pingedAt = new Float64Array(count)
    this.#sentAt = new Float64Array(count)
    this.#pongTimeout = pongTimeout
    this.#nextAt = this.tickMs
    this.#clock = clock
    this.#timeAt = clock()
  }

  /** Runs timers while sessions exist. Without `start`, the owner calls `tick`. */
  start() {
    this.#started = true
    if (this.#size > 0) this.#wake()
  }

  #wake() {
    // Excludes time without sessions.
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
    session.place = (this.#slots[slot].push(session) - 1) * count + slot
  }

  /** @param {Session} session */
  remove(session) {
    if (session.place < 0) return
    const count = this.#slots.length
    const slot = this.#slots[session.place % count]
    const last = /** @type {Session} */ (slot.pop())
    if (last !== session) {
      slot[Math.floor(session.place / count)] = last
      last.place = session.place
    }
    session.place = -1
    if (--this.#size === 0) this.#sleep()
  }

  /** @param {Session} session a pinged one @returns {number} ms since the ping */
  sincePing(session) {
    return this.#clock() - this.#sentAt[session.place % this.#slots.length]
  }

  /** @param {(session: Session) => void} visit must not add or remove sessions */
  forEach(visit) {
    for (const slot of this.#slots) for (let i = 0; i < slot.length; i++) visit(slot[i])
  }

  /** Runs in slices, after the reads of this turn of the event loop. */
  tick() {
    if (this.enabled) this.#work.start()
  }

  get working() {
    return this.#work.running
  }

  /** @returns {boolean} false: no slot is due */
  #step() {
    const now = this.#clock()
    this.#time += Math.min(this.wakeMs + MAX_STALL_MS, now - this.#timeAt)
    this.#timeAt = now
    const count = this.#slots.length
    if (this.#unchecked > 0) {
      const slot = (this.#next - this.#unchecked + count) % count
      if (this.#time - this.#pingedAt[slot] >= this.#pongTimeout) {
        this.#unchecked--
        visitBackwards(this.#slots[slot], session => session.checkPong())
        return true
      }
    }
    // A late ping delays the next one until its pongs are due.
    if (this.#time < this.#nextAt || this.#unchecked === count) return false
    const slot = this.#next
    this.#pingedAt[slot] = this.#time
    this.#sentAt[slot] = now
    this.#nextAt += this.tickMs
    this.#next = (slot + 1) % count
    this.#unchecked++
    visitBackwards(this.#slots[slot], session => session.ping())
    return true
  }
}

/**
 * Backwards: when a session closes, the last one, already visited, replaces it.
 * @param {Session[]} slot @param {(session: Session) => void} visit
 */
function visitBackwards(slot, visit) {
  for (let i = slot.length - 1; i >= 0; i--) if (i < slot.length) visit(slot[i])
}
