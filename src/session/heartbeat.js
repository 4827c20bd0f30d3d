/** @import { Session } from './session.js' */

/** Maximum length and minimum number of slots. */
const MAX_TICK_MS = 1000
const MIN_SLOTS = 16
const MIN_TICK_MS = 10

/**
 * Pings by slot, without a timer for each session. Each tick pings the sessions of the next slot, and closes those of
 * the slot pinged `pongTimeout` ago that have not sent a pong.
 *
 *   slots   [0][1][2] ... [n-1]      n ticks = ping interval
 *                 ^ pinged now
 *            ^ pinged pongTimeout ago: checked now
 *
 * Every connected session is in a slot, so this is also the list of connected sessions. No TimerWheel: sessions share
 * one interval and never leave their slot, where a Timer would be scheduled again for each ping and each pong timeout.
 */
export class Heartbeat {
  /** @type {Session[][]} */
  #slots
  #now = 0
  #pongTicks

  /** @param {number} interval ms; 0 = no pings @param {number} pongTimeout ms, less than the interval */
  constructor(interval, pongTimeout) {
    const span = interval || MAX_TICK_MS * MIN_SLOTS
    /** ms between two calls of `tick`. */
    this.tickMs = Math.max(MIN_TICK_MS, Math.min(MAX_TICK_MS, Math.round(span / MIN_SLOTS)))
    const count = Math.max(2, Math.round(span / this.tickMs))
    this.enabled = interval > 0
    this.#pongTicks = Math.min(count - 1, Math.ceil(pongTimeout / this.tickMs))
    this.#slots = Array.from({ length: count }, () => [])
  }

  /** First ping after 50 to 100 % of the interval. @param {Session} session */
  add(session) {
    const count = this.#slots.length
    const ahead = Math.ceil(count / 2) + Math.floor(Math.random() * (Math.floor(count / 2) + 1))
    const slot = (this.#now + ahead) % count
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
  }

  /** @param {(session: Session) => void} visit must not add or remove sessions */
  forEach(visit) {
    for (const slot of this.#slots) for (let i = 0; i < slot.length; i++) visit(slot[i])
  }

  tick() {
    const slots = this.#slots
    this.#now = (this.#now + 1) % slots.length
    if (!this.enabled) return
    const pinged = slots[(this.#now - this.#pongTicks + slots.length) % slots.length]
    for (let i = pinged.length - 1; i >= 0; i--) pinged[i].checkPong()
    // Backwards: when a session closes, the last one, which is already done, moves to its place.
    const due = slots[this.#now]
    for (let i = due.length - 1; i >= 0; i--) due[i].ping()
  }
}
