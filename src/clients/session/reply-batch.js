/** @import { Encoded } from '../protocol/contract.js' */
/** @import { Session } from './session.js' */

/**
 * Collects the messages of one session while its frame is handled, so that replies to several commands leave in few
 * frames. One object serves all sessions of a worker: frames are handled one at a time.
 */
export class ReplyBatch {
  /** @type {Session | null} */
  owner = null
  /** @type {Encoded[]} */
  #messages = []
  #most

  /** @param {() => number} [most] replies in one frame (`client.max_messages_in_frame`); below 0: no limit */
  constructor(most = () => 16) {
    this.#most = most
  }

  /** @param {Session} session */
  open(session) {
    this.flush()
    this.owner = session
  }

  /** @param {Encoded} message */
  add(message) {
    this.#messages.push(message)
    if (this.#messages.length === this.#most()) this.#send()
  }

  #send() {
    const messages = this.#messages
    if (messages.length === 0 || !this.owner) return
    const { codec } = this.owner
    this.owner.transmit(messages.length === 1 ? messages[0] : codec.join(messages), messages.length)
    this.#messages = []
  }

  /** Sends the collected messages of a session before its frame is done. @param {Session} session */
  sendCollected(session) {
    if (this.owner === session) this.#send()
  }

  /** Sends the collected messages and clears the owner. */
  flush() {
    this.#send()
    this.owner = null
  }
}
