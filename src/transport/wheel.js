/**
 * @typedef {object} Timed
 * @property {number} dueAt ms
 * @property {number} slot -1: not in the wheel
 */

const SLOTS = 512

/**
 * Timer wheel: many deadlines without a timer for each. A slot holds what is due within its tick, in this round or a
 * later one.
 * @template {Timed} T
 */
export class Wheel {
  /** @type {Set<T>[]} */
  #slots = Array.from({ length: SLOTS }, () => new Set())
  #tickMs
  #now

  /** @param {number} tickMs @param {number} now ms */
  constructor(tickMs, now) {
    this.#tickMs = tickMs
    this.#now = Math.floor(now / tickMs)
  }

  /** @param {T} timed may be in the wheel already @param {number} dueAt ms */
  set(timed, dueAt) {
    timed.dueAt = dueAt
    // Slots up to that of `now` have been processed.
    const slot = Math.max(this.#now + 1, Math.ceil(dueAt / this.#tickMs)) % SLOTS
    if (timed.slot === slot) return
    if (timed.slot >= 0) this.#slots[timed.slot].delete(timed)
    timed.slot = slot
    this.#slots[slot].add(timed)
  }

  /** @param {T} timed */
  remove(timed) {
    if (timed.slot < 0) return
    this.#slots[timed.slot].delete(timed)
    timed.slot = -1
  }

  /**
   * @param {number} now ms
   * @param {(timed: T) => void} due called for each due entry, which has left the wheel
   */
  tick(now, due) {
    const end = Math.floor(now / this.#tickMs)
    // After a long sleep, one round is enough.
    for (let at = Math.max(this.#now + 1, end - SLOTS + 1); at <= end; at++) {
      this.#now = at
      for (const timed of this.#slots[at % SLOTS]) {
        if (timed.dueAt > now) continue
        this.remove(timed)
        due(timed)
      }
    }
  }
}
