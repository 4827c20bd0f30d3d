import { disconnects } from '../../../base/errors.js'
import { sizeOf } from '../../../metrics/traffic.js'
import { Session } from '../../session/session.js'
import { lines } from '../stream/stream-transport.js'
import { EndedSessions, PollQueue, QueueLimits } from './queue.js'

/** @import { Codec, Encoded } from '../../protocol/contract.js' */
/** @import { WorkerContext } from '../../session/context.js' */
/** @import { Fanout } from '../fanout.js' */
/** @import { Transport } from '../../session/session.js' */
/** @import { Carrier } from '../index.js' */
/** @import { WaitingPoll } from './answer.js' */

/** Minimum characters of replies kept outside the JavaScript heap. */
const LARGE = 4096

/** Queues processed per turn of the event loop: a few ms. */
const MAX_PER_TURN = 128

/** Close notice of a silent disconnect, as for a lost WebSocket connection. */
const LOST = Object.freeze({ code: 1006, reason: '' })

/**
 * Long-poll sessions of this worker. Queues are processed in slices: ten thousand polls that end together do not
 * block the event loop.
 * @implements {Transport}
 * @implements {Carrier}
 */
export class PollTransport {
  name = 'poll'
  emulated = true
  joins = true
  context
  traffic
  #fanout
  #limits
  /** Request of the session being opened. @type {WaitingPoll | null} */
  opening = null
  #ended = new EndedSessions(queue => {
    // With a poll, it is cleared after the response.
    if (queue.waitingPoll === null) this.#discard(queue)
  })
  /** @type {PollQueue[]} */
  #scheduled = []
  /** @type {PollQueue[]} queues with messages; `backlog` removes empty ones */
  #filled = []
  #slice = () => this.#runSlice()

  /** @param {WorkerContext} context @param {Fanout} fanout */
  constructor(context, fanout) {
    this.context = context
    this.traffic = context.traffic.of(this.name)
    this.#fanout = fanout
    const { client, poll } = context.config
    this.#limits = new QueueLimits(client.queue_max_size, poll.replies_max_size, queue =>
      this.schedule(queue),
    )
  }

  /** @returns {{bytes: number, largest: number}} unacknowledged bytes */
  backlog() {
    let bytes = 0
    let largest = 0
    this.#filled = this.#filled.filter(queue => {
      if (!(queue.listed = queue.hasMessages)) return false
      const unread = queue.held + queue.pending
      bytes += unread
      if (unread > largest) largest = unread
      return true
    })
    return { bytes, largest }
  }

  /** @param {Codec} codec @param {{user: string, headers: readonly string[] | null}} client */
  open(codec, { user, headers }) {
    const session = new Session(this, null, codec, 0)
    const queue = new PollQueue(session, this.#limits)
    session.connection = queue
    session.user = user
    if (headers !== null) session.needExtra().headers = headers
    session.sessionId = this.context.newSessionId()
    this.context.sessions.opened(session)
    this.#waitForPoll(queue)
    return queue
  }

  /** @param {string} sessionId @returns {PollQueue | undefined} also for an ended session, for a while */
  find(sessionId) {
    const session = this.context.sessions.find(sessionId)
    if (session === undefined) return this.#ended.get(sessionId)
    return session.transport === this ? session.connection : undefined
  }

  /** @param {PollQueue} queue @param {WaitingPoll} waitingPoll @param {number} timeout ms */
  poll(queue, waitingPoll, timeout) {
    const before = queue.waitingPoll
    queue.waitingPoll = waitingPoll
    // The client has abandoned its previous poll.
    before?.answer(this.#emptyAnswer(queue))
    if (queue.hasMessages || queue.closeNotice || timeout === 0) this.#answer(queue)
    else this.context.timers.schedule(queue, this.context.clock() + timeout)
  }

  /** @param {PollQueue} queue @param {WaitingPoll} waitingPoll of a disconnected client */
  abandon(queue, waitingPoll) {
    if (queue.waitingPoll !== waitingPoll) return
    queue.waitingPoll = null
    this.#waitForPoll(queue)
  }

  /** The client closed the session, or did not receive its id. @param {PollQueue} queue */
  leave(queue) {
    queue.session.ended()
    this.#discard(queue)
  }

  /** @param {PollQueue} queue */
  #waitForPoll(queue) {
    this.context.timers.schedule(queue, this.context.clock() + this.context.config.poll.session_timeout)
  }

  /** @param {PollQueue} queue */
  #discard(queue) {
    this.#ended.remove(queue)
    this.context.timers.cancel(queue)
    const { waitingPoll } = queue
    queue.waitingPoll = null
    waitingPoll?.answer(this.#emptyAnswer(queue))
    queue.clear()
  }

  /** @param {PollQueue} queue */
  #emptyAnswer({ acked, session }) {
    return { status: 200, body: '', seq: acked, binary: session.codec.binary, closeNotice: null }
  }

  /** @param {PollQueue} queue with a waiting poll */
  #answer(queue) {
    const { body, seq, whole } = queue.next()
    const waitingPoll = /** @type {WaitingPoll} */ (queue.waitingPoll)
    queue.waitingPoll = null
    this.#waitForPoll(queue)
    if (queue.full && !queue.closeNotice) this.schedule(queue)
    waitingPoll.answer({
      status: 200,
      body,
      seq,
      binary: queue.session.codec.binary,
      closeNotice: whole ? queue.closeNotice : null,
    })
  }

  /** @param {PollQueue} queue with messages, or timed out */
  schedule(queue) {
    if (queue.scheduled) return
    queue.scheduled = true
    if (this.#scheduled.push(queue) === 1) setImmediate(this.#slice)
  }

  #runSlice() {
    const list = this.#scheduled
    const rest = list.length > MAX_PER_TURN ? list.splice(MAX_PER_TURN) : []
    this.#scheduled = rest
    if (rest.length > 0) setImmediate(this.#slice)
    for (const queue of list) {
      queue.scheduled = false
      this.#process(queue)
    }
  }

  /** @param {PollQueue} queue */
  #process(queue) {
    const due = !queue.armed
    if (queue.full && !queue.session.closed) queue.session.close(disconnects.slow)
    else if (queue.waitingPoll) {
      if (queue.hasMessages || due) this.#answer(queue)
    } else if (due) {
      if (!queue.session.closed) queue.session.ended()
      this.#discard(queue)
    }
  }

  /** @param {PollQueue} queue @param {Encoded} message framed @param {boolean} shared with other queues */
  #enqueue(queue, message, shared) {
    // Ended sessions follow topics until released.
    if (queue.session.closed) return
    // The limit does not apply while a poll waits: its response empties the queue.
    if (queue.waitingPoll && !queue.fits(message)) this.#answer(queue)
    queue.add(message, shared)
    if (!queue.listed) {
      queue.listed = true
      this.#filled.push(queue)
    }
    if (queue.waitingPoll || queue.full) this.schedule(queue)
  }

  /** @param {Encoded} message valid during the call @param {Codec} codec @returns {Encoded} kept by the queue */
  #frame(message, codec) {
    if (!codec.binary) return lines(message)
    return typeof message === 'string' ? message : Buffer.from(message)
  }

  /** @type {Transport['send']} */
  send({ connection, codec }, message) {
    const framed = this.#frame(message, codec)
    const large = typeof framed === 'string' && framed.length >= LARGE
    this.#enqueue(connection, large ? Buffer.from(framed) : framed, false)
  }

  /** @type {Carrier['deliver']} */
  deliver(members, message, _publication, pushes = 1) {
    const clients = this.traffic.fannedOut(members.size, message.length, pushes)
    let framed = null
    for (const { connection, codec } of members) {
      // All followers of a topic have the same codec.
      framed ??= this.#frame(message, codec)
      this.#enqueue(connection, framed, true)
    }
    return clients
  }

  /** @type {Transport['unread']} */
  unread({ connection }) {
    return connection.held + connection.pending
  }

  /** @type {Transport['follow']} */
  follow(session, topic) {
    this.#fanout.follow(this, session, topic)
  }

  /** @type {Transport['unfollow']} */
  unfollow(session, topic) {
    this.#fanout.unfollow(this, session, topic)
  }

  framePing() {}

  /** @type {Transport['remoteAddress']} */
  remoteAddress({ connection }) {
    return (this.opening ?? connection.waitingPoll)?.remoteAddress() ?? ''
  }

  /** @type {Transport['close']} */
  close({ connection, codec }, { code, reason, silent }, _cause) {
    const queue = /** @type {PollQueue} */ (connection)
    if (silent) queue.end('', LOST)
    else {
      const push = codec.disconnect(code, reason)
      this.traffic.sent(1, sizeOf(push))
      queue.end(this.#frame(push, codec), { code, reason })
    }
    this.#ended.add(queue)
    if (queue.waitingPoll) this.schedule(queue)
    else this.#waitForPoll(queue)
  }
}
