/** @typedef {import('../../protocol/contract.js').Encoded} Encoded */

/** An answer ends with the message that makes it this long, in bytes; the next poll gets the rest. */
export const CUT = 1024 * 1024

/** So much may be given again without a word that it has arrived, in bytes: a client that does not read could fill any memory with it. */
const MAX_REPEATED = 16 * CUT

/** @param {Encoded} message */
const sizeOf = message => (typeof message === 'string' ? Buffer.byteLength(message) : message.length)

/**
 * @param {Encoded[]} messages
 * @returns {Encoded} one body
 */
function join(messages) {
  if (messages.length === 1) return messages[0]
  if (messages.every(message => typeof message === 'string')) return messages.join('')
  return Buffer.concat(
    messages.map(message => (typeof message === 'string' ? Buffer.from(message) : message)),
  )
}

/**
 * What one session has to say to a client that asks for it, numbered from 1 on. A message stays until the client has said
 * that it has it, so an answer that was lost on the way can be given again.
 *
 *   1 2 3 | 4 5 6 | 7 8 9
 *         ^ acked ^ sent  ^ last
 *    gone |  held | pending
 */
export class PollQueue {
  /** The client has the messages up to this one. */
  acked = 0
  /** Those up to this one have been in an answer. */
  sent = 0
  /** Bytes up to `sent`. */
  held = 0
  /** Bytes behind it. */
  pending = 0
  /** Bytes that were given again since the client has acknowledged something. */
  #repeated = 0
  /** Number of the last POST of commands that was taken. */
  received = 0
  /** Nothing more goes in: it would not fit. */
  full = false
  /** @type {{code: number, reason: string} | null} how the session has ended */
  closeNotice = null
  /** @type {import('./answer.js').WaitingPoll | null} the poll that waits for an answer */
  waitingPoll = null
  /** Whether the transport has it on its list of those to look at. */
  scheduled = false
  /** And on that of those with messages. */
  listed = false
  /** When its poll is to be answered or, if there is none, its session is to end, ms. */
  dueAt = 0
  /** Its place in the wheel, to which it belongs; -1: none. */
  slot = -1
  /** @type {Encoded[]} those behind `acked` */
  #messages = []

  /**
   * @param {import('../../session/session.js').Session} session
   * @param {number} limit bytes that may be pending
   */
  constructor(session, limit) {
    this.session = session
    this.limit = limit
  }

  /** Whether there is something that the client has not acknowledged. */
  get hasMessages() {
    return this.#messages.length > 0
  }

  /**
   * One that is longer than the limit fits if it is alone: a client that is refused it would come back for it for ever.
   * @param {Encoded} message
   */
  fits(message) {
    return this.pending === 0 || this.pending + sizeOf(message) <= this.limit
  }

  /** @param {Encoded} message framed; must not be changed afterwards */
  add(message) {
    if (this.full) return
    if (!this.fits(message)) {
      this.full = true
      return
    }
    this.pending += sizeOf(message)
    this.#messages.push(message)
  }

  /**
   * The last message of a session.
   * @param {Encoded} message framed
   * @param {{code: number, reason: string}} closeNotice
   */
  end(message, closeNotice) {
    if (this.full) this.clear()
    this.full = true
    this.closeNotice = closeNotice
    this.pending += sizeOf(message)
    this.#messages.push(message)
  }

  /** Drops what is there; the numbers go on. */
  clear() {
    this.acked = this.sent = this.acked + this.#messages.length
    this.held = this.pending = 0
    this.#messages = []
  }

  /** @param {number} number between `acked` and `sent`: the client has all messages up to this one */
  acknowledge(number) {
    const count = number - this.acked
    if (count > 0) this.#repeated = 0
    this.acked = number
    if (count < this.#messages.length) {
      for (const message of this.#messages.splice(0, count)) this.held -= sizeOf(message)
    } else if (count > 0) {
      this.#messages = []
      this.held = 0
    }
  }

  /**
   * What goes into the next answer.
   * @returns {{body: Encoded, seq: number, whole: boolean}} seq: number of the last message in the body; whole: whether that is
   *   the last one there is
   */
  next() {
    const messages = this.#messages
    let count = messages.length
    this.#repeated += this.held
    if (this.#repeated > MAX_REPEATED && this.closeNotice === null) this.full = true
    if (count === 0) return { body: '', seq: this.acked, whole: true }
    if (this.held + this.pending > CUT) {
      let size = 0
      for (count = 0; count < messages.length && size < CUT; count++) size += sizeOf(messages[count])
    }
    const whole = count === messages.length
    const seq = this.acked + count
    if (whole) {
      this.held += this.pending
      this.pending = 0
    } else {
      for (let i = this.sent - this.acked; i < count; i++) {
        const size = sizeOf(messages[i])
        this.held += size
        this.pending -= size
      }
    }
    this.sent = Math.max(this.sent, seq)
    return { body: join(whole ? messages : messages.slice(0, count)), seq, whole }
  }
}

const MAX_COUNT = 10_000
const MAX_BYTES = 8 * 1024 * 1024
/** About what an ended session takes without its messages, bytes. */
const EACH = 256

/**
 * Sessions that have ended while their clients may not know it yet. The oldest ones go when they are too many.
 */
export class EndedSessions {
  /** @type {Map<string, {queue: PollQueue, bytes: number}>} by session id */
  #ended = new Map()
  #bytes = 0
  #dropped

  /** @param {(queue: PollQueue) => void} dropped */
  constructor(dropped) {
    this.#dropped = dropped
  }

  /** @param {string} sessionId */
  get(sessionId) {
    return this.#ended.get(sessionId)?.queue
  }

  /** @param {PollQueue} queue whose closeNotice is in it */
  add(queue) {
    const bytes = EACH + queue.held + queue.pending
    this.#ended.set(queue.session.sessionId, { queue, bytes })
    this.#bytes += bytes
    for (const oldest of this.#ended.values()) {
      if (this.#ended.size <= MAX_COUNT && this.#bytes <= MAX_BYTES) break
      this.remove(oldest.queue)
      this.#dropped(oldest.queue)
    }
  }

  /** @param {PollQueue} queue */
  remove(queue) {
    const { sessionId } = queue.session
    this.#bytes -= this.#ended.get(sessionId)?.bytes ?? 0
    this.#ended.delete(sessionId)
  }
}
