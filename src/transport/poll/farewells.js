/** @typedef {import('./mailbox.js').Mailbox} Mailbox */

const MAX_COUNT = 10_000
const MAX_BYTES = 8 * 1024 * 1024
/** About what an ended session takes without its messages, bytes. */
const EACH = 256

/**
 * Sessions that have ended while their clients may not know it yet. The oldest ones go when they are too many.
 */
export class Farewells {
  /** @type {Map<string, {mailbox: Mailbox, bytes: number}>} by session id */
  #ended = new Map()
  #bytes = 0
  #dropped

  /** @param {(mailbox: Mailbox) => void} dropped */
  constructor(dropped) {
    this.#dropped = dropped
  }

  /** @param {string} sessionId */
  get(sessionId) {
    return this.#ended.get(sessionId)?.mailbox
  }

  /** @param {Mailbox} mailbox whose farewell is in it */
  add(mailbox) {
    const bytes = EACH + mailbox.held + mailbox.pending
    this.#ended.set(mailbox.session.sessionId, { mailbox, bytes })
    this.#bytes += bytes
    for (const oldest of this.#ended.values()) {
      if (this.#ended.size <= MAX_COUNT && this.#bytes <= MAX_BYTES) break
      this.remove(oldest.mailbox)
      this.#dropped(oldest.mailbox)
    }
  }

  /** @param {Mailbox} mailbox */
  remove(mailbox) {
    const { sessionId } = mailbox.session
    this.#bytes -= this.#ended.get(sessionId)?.bytes ?? 0
    this.#ended.delete(sessionId)
  }
}
