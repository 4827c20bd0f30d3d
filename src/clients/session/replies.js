// Recovery and history replies. One reply fits into the client's outgoing queue (client.queue_max_size). The next one
// waits until the client has read it, so that clients with large requests are not closed as slow.

import { Timer } from '../../base/timers.js'

/** @import { Session } from './session.js' */
/** @import { Encoded } from '../protocol/contract.js' */

/** Shares of client.queue_max_size: publications of one reply, and unread bytes that delay the next. */
const REPLY_SHARE = 3 / 4
const UNREAD_SHARE = 1 / 4
const INTERVAL_MS = 100

/** @param {Session} session */
export const maxReplyBytes = ({ context }) => Math.floor(context.config.client.queue_max_size * REPLY_SHARE)

/** @param {Session} session */
const isBehind = session =>
  session.transport.unread(session) > session.context.config.client.queue_max_size * UNREAD_SHARE

/** A command waiting for its client to read; later commands wait in the session's queue. */
class WaitingCommand extends Timer {
  #session
  #id
  #work

  /** @param {Session} session @param {number} id @param {() => void} work */
  constructor(session, id, work) {
    super()
    this.#session = session
    this.#id = id
    this.#work = work
  }

  onTimer() {
    const session = this.#session
    if (session.closed) return
    if (!isBehind(session)) return session.resume(this.#id, this.#work)
    const { timers, clock } = session.context
    timers.schedule(this, clock() + INTERVAL_MS)
  }
}

/**
 * Calls `work` now, or once the client has read most earlier messages.
 * @param {Session} session @param {number} id of the command @param {() => void} work not called after a disconnect
 */
export function whenRead(session, id, work) {
  session.context.replies.sendCollected(session)
  if (session.closed) return
  if (!isBehind(session)) return work()
  session.hold()
  const command = new WaitingCommand(session, id, work)
  // Socket servers may write at the end of an event-loop turn.
  setImmediate(() => command.onTimer())
}

/** Collects replies to one frame of a session. Frames are handled one at a time. */
export class ReplyBatch {
  /** @type {Session | null} */
  owner = null
  /** @type {Encoded[]} */
  #messages = []
  #max

  /** @param {() => number} [max] replies per frame (`client.max_messages_in_frame`); below 0: no limit */
  constructor(max = () => 16) {
    this.#max = max
  }

  /** @param {Session} session */
  open(session) {
    this.flush()
    this.owner = session
  }

  /** @param {Encoded} message */
  add(message) {
    this.#messages.push(message)
    if (this.#messages.length === this.#max()) this.#send()
  }

  #send() {
    const messages = this.#messages
    if (messages.length === 0 || !this.owner) return
    const { codec } = this.owner
    this.owner.transmit(messages.length === 1 ? messages[0] : codec.join(messages), messages.length)
    this.#messages = []
  }

  /** @param {Session} session */
  sendCollected(session) {
    if (this.owner === session) this.#send()
  }

  flush() {
    this.#send()
    this.owner = null
  }
}
