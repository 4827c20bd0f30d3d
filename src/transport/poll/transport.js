import { disconnects } from '../../errors.js'
import { Session } from '../../session/session.js'
import { sizeOf } from '../../stats/traffic.js'
import { lines } from '../stream/framing.js'
import { Wheel } from '../wheel.js'
import { Farewells, Mailbox } from './mailbox.js'

/**
 * @typedef {import('../index.js').Transport} Transport
 * @typedef {import('../index.js').Carrier} Carrier
 * @typedef {import('../../protocol/contract.js').Encoded} Encoded
 * @typedef {import('./answer.js').Asker} Asker
 */

const TICK_MS = 100
/** Mailboxes that are looked at in one turn of the event loop: about a few ms of answers. */
const AT_ONCE = 128

/**
 * The sessions of this worker that clients ask for what they have to say. Nothing is answered where it arises: whoever has something to say
 * is put on a list, and the list is worked off in small pieces, so that ten thousand polls that end together hold up nobody else.
 * @implements {Transport}
 * @implements {Carrier}
 */
export class PollTransport {
  name = 'poll'
  emulated = true
  context
  traffic
  #fanout
  #sessionTimeout
  #limit
  /** @type {Wheel<Mailbox>} */
  #wheel
  #farewells = new Farewells(mailbox => this.#wheel.remove(mailbox))
  /** @type {Mailbox[]} */
  #list = []
  /** @type {Mailbox[]} those that have got messages; the others leave it when they are looked at */
  #filled = []
  #work = () => this.#workOff()

  /**
   * @param {import('../../worker/context.js').WorkerContext} context
   * @param {import('../fanout.js').Fanout} fanout
   */
  constructor(context, fanout) {
    this.context = context
    this.traffic = context.traffic.of(this.name)
    this.#fanout = fanout
    this.#sessionTimeout = context.config.poll.session_timeout
    this.#limit = context.config.client.queue_max_size
    this.#wheel = new Wheel(TICK_MS, context.clock())
    setInterval(() => this.tick(), TICK_MS).unref()
  }

  /** Polls whose time has passed, and sessions that nobody asks for. */
  tick() {
    this.#wheel.tick(this.context.clock(), mailbox => this.#look(mailbox))
  }

  /** @returns {{bytes: number, largest: number}} what clients have not said they have */
  outbox() {
    let bytes = 0
    let largest = 0
    this.#filled = this.#filled.filter(mailbox => {
      if (!(mailbox.listed = mailbox.something)) return false
      const unread = mailbox.held + mailbox.pending
      bytes += unread
      if (unread > largest) largest = unread
      return true
    })
    return { bytes, largest }
  }

  // Clients

  /**
   * @param {import('../../protocol/contract.js').Codec} codec
   * @param {string} user
   * @returns {Mailbox} of a new session
   */
  open(codec, user) {
    const session = new Session(this, null, codec, 0)
    const mailbox = new Mailbox(session, this.#limit)
    session.connection = mailbox
    session.user = user
    session.sessionId = this.context.newSessionId()
    this.context.sessions.opened(session)
    this.#rest(mailbox)
    return mailbox
  }

  /**
   * @param {string} sessionId
   * @returns {Mailbox | undefined} also of a session that has ended, for a while
   */
  find(sessionId) {
    const session = this.context.sessions.find(sessionId)
    if (session === undefined) return this.#farewells.get(sessionId)
    return session.transport === this ? session.connection : undefined
  }

  /**
   * A poll: answered at once when there is something to say, else later.
   * @param {Mailbox} mailbox
   * @param {Asker} asker
   * @param {number} timeout ms
   */
  ask(mailbox, asker, timeout) {
    const before = mailbox.asker
    mailbox.asker = asker
    // The client has given up on the one before, or lost it: empty, it changes nothing.
    before?.give(this.#empty(mailbox))
    if (mailbox.something || mailbox.farewell || timeout === 0) this.#answer(mailbox)
    else this.#wheel.set(mailbox, this.context.clock() + timeout)
  }

  /**
   * The client of a poll has left without an answer.
   * @param {Mailbox} mailbox
   * @param {Asker} asker
   */
  abandon(mailbox, asker) {
    if (mailbox.asker !== asker) return
    mailbox.asker = null
    this.#rest(mailbox)
  }

  /**
   * The client has said that it leaves, or has never learned of its session.
   * @param {Mailbox} mailbox
   */
  leave(mailbox) {
    mailbox.session.ended()
    this.#forget(mailbox)
  }

  /**
   * Nobody asks: the session has some time left.
   * @param {Mailbox} mailbox
   */
  #rest(mailbox) {
    this.#wheel.set(mailbox, this.context.clock() + this.#sessionTimeout)
  }

  /** @param {Mailbox} mailbox */
  #forget(mailbox) {
    this.#farewells.remove(mailbox)
    this.#wheel.remove(mailbox)
    const { asker } = mailbox
    mailbox.asker = null
    asker?.give(this.#empty(mailbox))
    mailbox.clear()
  }

  // Answers

  /** @param {Mailbox} mailbox */
  #empty({ acked, session }) {
    return { status: 200, body: '', seq: acked, binary: session.codec.binary, farewell: null }
  }

  /** @param {Mailbox} mailbox that somebody asks for */
  #answer(mailbox) {
    const { body, seq, whole } = mailbox.take()
    const asker = /** @type {Asker} */ (mailbox.asker)
    mailbox.asker = null
    this.#rest(mailbox)
    if (mailbox.full && !mailbox.farewell) this.#look(mailbox)
    asker.give({
      status: 200,
      body,
      seq,
      binary: mailbox.session.codec.binary,
      farewell: whole ? mailbox.farewell : null,
    })
  }

  /** @param {Mailbox} mailbox that has something to say, or whose time has come */
  #look(mailbox) {
    if (mailbox.queued) return
    mailbox.queued = true
    if (this.#list.push(mailbox) === 1) setImmediate(this.#work)
  }

  #workOff() {
    const list = this.#list
    const rest = list.length > AT_ONCE ? list.splice(AT_ONCE) : []
    this.#list = rest
    if (rest.length > 0) setImmediate(this.#work)
    for (const mailbox of list) {
      mailbox.queued = false
      this.#settle(mailbox)
    }
  }

  /** @param {Mailbox} mailbox */
  #settle(mailbox) {
    const due = mailbox.slot < 0
    if (mailbox.full && !mailbox.session.closed) mailbox.session.close(disconnects.slow)
    else if (mailbox.asker) {
      if (mailbox.something || due) this.#answer(mailbox)
    } else if (due) {
      if (!mailbox.session.closed) mailbox.session.ended()
      this.#forget(mailbox)
    }
  }

  // Sessions

  /**
   * @param {Mailbox} mailbox
   * @param {Encoded} message framed
   */
  #post(mailbox, message) {
    // A client that asks takes what it is given, however much comes in one turn.
    if (mailbox.asker && !mailbox.fits(message)) this.#answer(mailbox)
    mailbox.add(message)
    if (!mailbox.listed) {
      mailbox.listed = true
      this.#filled.push(mailbox)
    }
    if (mailbox.asker || mailbox.full) this.#look(mailbox)
  }

  /**
   * @param {Encoded} message valid during the call
   * @param {import('../../protocol/contract.js').Codec} codec
   * @returns {Encoded} as it stands in a body; lives on
   */
  #frame(message, codec) {
    if (!codec.binary) return lines(message)
    return typeof message === 'string' ? message : Buffer.from(message)
  }

  /** @type {Transport['send']} */
  send({ connection, codec }, message) {
    this.#post(connection, this.#frame(message, codec))
  }

  /** @type {Carrier['deliver']} */
  deliver(members, message, _publication) {
    const clients = this.traffic.fannedOut(members.size, message.length)
    let framed = null
    for (const { connection, codec } of members) {
      // Those who follow one topic have one codec.
      framed ??= this.#frame(message, codec)
      this.#post(connection, framed)
    }
    return clients
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

  /** @type {Transport['close']} */
  close({ connection, codec }, { code, reason }, _cause) {
    const mailbox = /** @type {Mailbox} */ (connection)
    const push = codec.disconnect(code, reason)
    this.traffic.sent(1, sizeOf(push))
    mailbox.end(this.#frame(push, codec), { code, reason })
    this.#farewells.add(mailbox)
    if (mailbox.asker) this.#look(mailbox)
    else this.#rest(mailbox)
  }
}
