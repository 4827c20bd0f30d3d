/** Replies in one frame (client protocol, section 1.1). */
const MAX_JOINED = 16

/**
 * Gathers what one session sends while its frame is being handled, so that the replies to a batch of commands leave
 * in few frames. There is one for all sessions of a worker, because commands are handled one session at a time.
 */
export class ReplyBatch {
  /** @type {import('./session.js').Session | null} */
  owner = null
  /** @type {import('../protocol/contract.js').Encoded[]} */
  #messages = []

  /** @param {import('./session.js').Session} session */
  open(session) {
    this.flush()
    this.owner = session
  }

  /** @param {import('../protocol/contract.js').Encoded} message */
  add(message) {
    this.#messages.push(message)
    if (this.#messages.length === MAX_JOINED) this.#send()
  }

  #send() {
    const messages = this.#messages
    if (messages.length === 0 || !this.owner) return
    const { codec } = this.owner
    this.owner.transmit(messages.length === 1 ? messages[0] : codec.join(messages), messages.length)
    this.#messages = []
  }

  /** Sends what is there, and belongs to nobody again. */
  flush() {
    this.#send()
    this.owner = null
  }
}
