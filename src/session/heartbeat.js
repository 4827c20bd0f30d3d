/** A slot is not shorter than this, and there are at least this many of them. */
const MAX_TICK_MS = 1000
const MIN_SLOTS = 16
const MIN_TICK_MS = 10

/**
 * Pings by slot, without a timer for each session. A session belongs to one of n slots; each tick pings the next slot,
 * and one pass over the slot that was pinged `pongTimeout` ago closes those without a pong.
 *
 *   slots   [0][1][2] ... [n-1]      n ticks = ping interval
 *                 ^ pinged now
 *            ^ pinged pongTimeout ago: checked now
 *
 * Every session is in a slot from its connect until it closes, so this is also the list of them.
 */
export class Heartbeat {
  /** @type {import('./session.js').Session[][]} */
  #slots
  #now = 0
  #pongTicks

  /**
   * @param {number} interval ms; 0 = no pings
   * @param {number} pongTimeout ms, less than the interval
   */
  constructor(interval, pongTimeout) {
    const span = interval || MAX_TICK_MS * MIN_SLOTS
    /** ms between two calls of `tick`. */
    this.tickMs = Math.max(MIN_TICK_MS, Math.min(MAX_TICK_MS, Math.round(span / MIN_SLOTS)))
    const count = Math.max(2, Math.round(span / this.tickMs))
    this.enabled = interval > 0
    this.#pongTicks = Math.min(count - 1, Math.ceil(pongTimeout / this.tickMs))
    this.#slots = Array.from({ length: count }, () => [])
  }

  /** @param {import('./session.js').Session} session whose first ping comes after 50 to 100 % of the interval */
  add(session) {
    const count = this.#slots.length
    const ahead = Math.ceil(count / 2) + Math.floor(Math.random() * (Math.floor(count / 2) + 1))
    const slot = (this.#now + ahead) % count
    session.slot = slot
    session.slotIndex = this.#slots[slot].push(session) - 1
  }

  /** @param {import('./session.js').Session} session */
  remove(session) {
    if (session.slotIndex < 0) return
    const slot = this.#slots[session.slot]
    const last = /** @type {import('./session.js').Session} */ (slot.pop())
    if (last !== session) {
      slot[session.slotIndex] = last
      last.slotIndex = session.slotIndex
    }
    session.slotIndex = -1
  }

  /** @param {(session: import('./session.js').Session) => void} visit must not add or remove sessions */
  forEach(visit) {
    for (const slot of this.#slots) for (let i = 0; i < slot.length; i++) visit(slot[i])
  }

  tick() {
    const slots = this.#slots
    this.#now = (this.#now + 1) % slots.length
    if (!this.enabled) return
    const pinged = slots[(this.#now - this.#pongTicks + slots.length) % slots.length]
    for (let i = pinged.length - 1; i >= 0; i--) pinged[i].checkPong()
    // Backwards, because a session that ends itself meanwhile gives its place to the last one.
    const due = slots[this.#now]
    for (let i = due.length - 1; i >= 0; i--) due[i].ping()
  }
}
