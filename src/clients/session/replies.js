// Replies with publications: recovery and history. One such reply fits into the outgoing queue of its client
// (client.queue_max_size), and the next one waits until the client has read. So a client that asks for much is served
// as fast as it reads, instead of being closed as slow, and never has more than its queue in memory.

import { Timer } from '../../base/timers.js'

/** @import { Session } from './session.js' */
/** @import { Encoded } from '../protocol/contract.js' */

/** Shares of client.queue_max_size: publications of one reply, and unread bytes with which the next one waits. */
const REPLY_SHARE = 3 / 4
const UNREAD_SHARE = 1 / 4
/** Time between two looks at the unread bytes, ms. */
const INTERVAL_MS = 100

/** @param {Session} session @returns {number} maximum bytes of the publications in one reply */
export const maxReplyBytes = ({ context }) => Math.floor(context.config.client.queue_max_size * REPLY_SHARE)

/** @param {Session} session */
const isBehind = session =>
  session.transport.unread(session) > session.context.config.client.queue_max_size * UNREAD_SHARE

/** A command that waits until its client has read. The commands behind it wait in the session's queue. */
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
 * Calls `work`, which leads to a large reply, when the client has read most of what was sent before: now or later.
 * @param {Session} session @param {number} id of the command @param {() => void} work not called after the client left
 */
export function whenRead(session, id, work) {
  session.context.replies.sendCollected(session)
  if (session.closed) return
  if (!isBehind(session)) return work()
  session.hold()
  const command = new WaitingCommand(session, id, work)
  // A socket server may write what a turn of the event loop has brought at its end.
  setImmediate(() => command.onTimer())
}

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
