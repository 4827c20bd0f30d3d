import { Timer } from '../../../base/timers.js'

/** @import { Encoded } from '../../protocol/contract.js' */
/** @import { Session } from '../../session/session.js' */
/** @import { WaitingPoll } from './answer.js' */
/** @import { PollTransport } from './transport.js' */

/** Response size limit, bytes; checked before each message. The next poll gets the rest. */
export const CUT = 1024 * 1024

/** Maximum bytes resent without an acknowledgement. */
const MAX_REPEATED = 16 * CUT

/** @param {Encoded} message */
const sizeOf = message => (typeof message === 'string' ? Buffer.byteLength(message) : message.length)

/** @param {Encoded[]} messages @returns {Encoded} one body */
function join(messages) {
  if (messages.length === 1) return messages[0]
  if (messages.every(message => typeof message === 'string')) return messages.join('')
  return Buffer.concat(
    messages.map(message => (typeof message === 'string' ? Buffer.from(message) : message)),
  )
}

/**
 * Limits of a worker's queues, and the bytes requested by clients: replies and resent responses. Publications do not
 * count: queues share their bytes. Above the limit, the queue with the oldest acknowledgement is dropped.
 */
export class QueueLimits {
  bytes = 0
  /** @type {Set<PollQueue>} queues with requested bytes, by last acknowledgement */
  #holders = new Set()
  #dropped

  /**
   * @param {number} pending unsent bytes of one queue @param {number} requested bytes of all queues
   * @param {(queue: PollQueue) => void} dropped must end the queue's session
   */
  constructor(pending, requested, dropped) {
    this.pending = pending
    this.requested = requested
    this.#dropped = dropped
  }

  /** @param {PollQueue} queue @param {number} more bytes @returns {boolean} false: too many */
  makeRoom(queue, more) {
    if (more > this.requested) return false
    for (const oldest of this.#holders) {
      if (this.bytes + more <= this.requested) return true
      if (oldest === queue) return false
      oldest.drop()
      this.#dropped(oldest)
    }
    return true
  }

  /** Updates the requested bytes of a queue. @param {PollQueue} queue @param {number} from @param {number} to */
  change(queue, from, to) {
    this.bytes += to - from
    // Acknowledgements reduce the bytes.
    if (to <= from) this.#holders.delete(queue)
    if (to > 0) this.#holders.add(queue)
  }
}

/**
 * The outgoing queue of a long-poll session. Messages are numbered from 1 and kept until the client acknowledges them.
 *
 *   1 2 3 | 4 5 6 | 7 8 9
 *         ^ acked ^ sent  ^ last
 *    gone |  held | pending
 *
 * At most `limits.pending` bytes are pending, or one message of at most CUT more; the same limit applies to held
 * bytes. The timer is the timeout of the poll or, without a poll, of the session.
 */
export class PollQueue extends Timer {
  acked = 0
  sent = 0
  /** Bytes sent but not acknowledged, and unsent bytes. */
  held = 0
  pending = 0
  /** Bytes resent since the last acknowledgement. */
  #repeated = 0
  /** Share of `limits.bytes`. */
  #requested = 0
  /** Number of the last accepted command POST. */
  received = 0
  /** A message did not fit: the session is closed. */
  full = false
  /** @type {{code: number, reason: string} | null} set once the session has ended */
  closeNotice = null
  /** @type {WaitingPoll | null} */
  waitingPoll = null
  scheduled = false
  /** Whether the transport lists it as having messages. */
  listed = false
  /** @type {Encoded[]} after `acked` */
  #messages = []

  /** @param {Session} session @param {QueueLimits} limits shared by all queues */
  constructor(session, limits) {
    super()
    this.session = session
    this.limits = limits
  }

  onTimer() {
    const transport = /** @type {PollTransport} */ (this.session.transport)
    transport.schedule(this)
  }

  get hasMessages() {
    return this.#messages.length > 0
  }

  /** A single message may be longer than the limit. @param {Encoded} message */
  fits(message) {
    const size = sizeOf(message)
    const { pending } = this.limits
    return this.pending === 0 ? this.held + size <= pending + CUT : this.pending + size <= pending
  }

  /** @param {Encoded} message not changed afterwards @param {boolean} shared by several queues */
  add(message, shared) {
    if (this.full) return
    const size = sizeOf(message)
    if (!this.fits(message) || !(shared || this.#request(size))) {
      this.full = true
      return
    }
    this.pending += size
    this.#messages.push(message)
  }

  /** @param {number} bytes @returns {boolean} false: too many */
  #request(bytes) {
    if (!this.limits.makeRoom(this, bytes)) return false
    this.#setRequested(this.#requested + bytes)
    return true
  }

  /** @param {number} bytes */
  #setRequested(bytes) {
    if (bytes === 0 && this.#requested === 0) return
    this.limits.change(this, this.#requested, bytes)
    this.#requested = bytes
  }

  /** Adds the last message. @param {Encoded} message framed @param {{code: number, reason: string}} closeNotice */
  end(message, closeNotice) {
    if (this.full) this.clear()
    this.full = true
    this.closeNotice = closeNotice
    // EndedSessions limits the queues of ended sessions.
    this.#setRequested(0)
    this.pending += sizeOf(message)
    this.#messages.push(message)
  }

  drop() {
    this.clear()
    this.full = true
  }

  /** Drops all messages; numbering continues. */
  clear() {
    this.acked = this.sent = this.acked + this.#messages.length
    this.held = this.pending = 0
    this.#messages = []
    this.#setRequested(0)
  }

  /** @param {number} number last received message, `acked` to `sent` */
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
    if (count > 0) this.#setRequested(Math.min(this.#requested, this.held + this.pending))
  }

  #repeat() {
    this.#repeated += this.held
    const tooMuch = this.#repeated > MAX_REPEATED
    if (this.closeNotice === null) {
      if (tooMuch || !this.#request(this.held)) this.full = true
    } else if (tooMuch) {
      const last = this.#messages.slice(-1)
      this.clear()
      this.acked = this.sent = this.acked - 1
      this.pending = sizeOf(last[0])
      this.#messages = last
    }
  }

  /** The next response. seq: its last message; whole: it has all messages. */
  next() {
    if (this.held > 0) this.#repeat()
    const messages = this.#messages
    let count = messages.length
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
/** Estimated bytes of an ended session, excluding messages. */
const EACH = 256

/** Ended sessions until clients receive the close. Above the limits, the oldest are dropped. */
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

  /** @param {PollQueue} queue with its close message */
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
