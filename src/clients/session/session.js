// Session: one client of this worker, as the state machine of the Centrifuge protocol. Commands are in commands/.
// May import auth, hub, protocol and the layers below; transports only through the contract below.
// Guarantees: replies in command order; nothing sent after the close; an ended session releases all resources.

import { Disconnect, disconnects, errors, ReplyError, reasonOf, unsubscribes } from '../../base/errors.js'
import { sizeOf } from '../../metrics/traffic.js'
import { CallFailed } from '../hooks/contract.js'
import { dispatch } from './commands/index.js'
import { SessionExtra } from './extra.js'
import { State, Trait } from './state.js'
import { add, count, find, flush, Kind, list, MAPPED, remove, subscribeEnds } from './subscription.js'

/** @import { Publication } from '../../channels/broker/contract.js' */
/** @import { Codec, Encoded } from '../protocol/contract.js' */
/** @import { Timer } from '../../base/timers.js' */
/** @import { TransportTraffic } from '../../metrics/traffic.js' */
/** @import { WorkerContext } from './context.js' */
/** @import { Subscription, Subscriptions } from './subscription.js' */

/**
 * The contract of a transport. One object serves all sessions of its kind.
 * @typedef {object} Transport
 * @property {string} name in metrics and logs
 * @property {boolean} emulated commands arrive by POST: the connect reply contains session and node
 * @property {WorkerContext} context
 * @property {TransportTraffic} traffic sessions count commands and messages, the transport counts the rest
 * @property {(session: Session, frame: Encoded) => void} send
 * @property {(session: Session) => number} unread sent bytes not yet passed to the kernel, or not acknowledged
 * @property {(session: Session, topic: string) => void} follow later messages of the topic are ordered with `send`
 * @property {(session: Session, topic: string) => void} unfollow also called for an ended session
 * @property {(session: Session) => void} framePing sends a transport-level ping, if supported
 * @property {(session: Session, disconnect: Disconnect, cause: Error) => void} close `cause`: the error behind the
 *   disconnect. A silent disconnect sends no message and no close frame
 * @property {(session: Session) => string} remoteAddress peer address of an open session, '' if unknown
 * @property {(session: Session) => void} [connected] called after the server-side subscriptions have joined
 */

/** Maximum bytes of queued commands, in multiples of `websocket.message_size_limit`. */
const MAX_QUEUED_MESSAGES = 16
/** Commands between two checks of this limit. */
const CHECK_INTERVAL = 64
/** Bytes of a queue entry, excluding its command. */
const ENTRY_OVERHEAD = 16

/** Maximum pending publishes of one client. */
const MAX_UNANSWERED = 1024

/** More pending commands than any concurrency. */
const ALL = 1 << 20

/** Initial queue of a held session. Shared by all sessions, always empty. @type {any[]} */
const HELD = []

export class Session {
  /**
   * @param {Transport} transport @param {any} connection the transport's handle
   * @param {Codec} codec @param {number} traits bits of Trait
   */
  constructor(transport, connection, codec, traits) {
    this.transport = transport
    this.connection = connection
    this.codec = codec
    this.traits = traits
    /** @type {number} one of State */
    this.state = State.OPEN
    /** Client id, a UUID; '' before the connect command. */
    this.id = ''
    /** Secret UUID that identifies the session in POSTs; '' without POSTs. */
    this.sessionId = ''
    this.user = ''
    /** Connection info as JSON text, '' if none. */
    this.info = ''
    /** @type {Timer | null} */
    this.expiry = null
    /** @type {Subscriptions} */
    this.subscriptions = null
    /** @type {any[] | null} raw commands and deferred functions; null: no command is held */
    this.queue = null
    this.unanswered = 0
    /** Other pending commands, between `hold` and `resume`. */
    this.underway = 0
    /** Time of the connect, ms of performance.now(). */
    this.since = 0
    /** @type {SessionExtra | null} */
    this.extra = null
    /** Slot of Heartbeat, and index in it; -1: in none. */
    this.slot = 0
    this.slotIndex = -1
  }

  remoteAddress() {
    return this.transport.remoteAddress(this)
  }

  needExtra() {
    return (this.extra ??= new SessionExtra())
  }

  get context() {
    return this.transport.context
  }

  get connected() {
    return this.state === State.CONNECTED
  }

  // Receiving. Replies are in command order:
  //
  //   receive -> split -> handle -> dispatch -+-> reply -> ReplyBatch, until the frame is done
  //                         |                 +-> hold ... reply of broker or hook ... resume -> reply, then the queue
  //                         +-> queue: too many are pending, or a publish is; other publishes and pongs pass

  /** @param {Buffer} frame valid only during the call */
  receive(frame) {
    if (this.state === State.CLOSED) return
    const { replies } = this.context
    replies.open(this)
    try {
      const raws = this.codec.split(frame)
      this.transport.traffic.received(raws.length, frame.length)
      this.#handleAll(raws)
    } catch (error) {
      this.fail(0, error)
    }
    replies.flush()
  }

  /** @param {any[]} raws raw commands and deferred functions */
  #handleAll(raws) {
    for (const raw of raws) {
      // Commands after a refused connect get no reply.
      if (this.state >= State.REFUSED) return
      if (this.queue) {
        if (raw === this.codec.pong) this.pong()
        else this.#postpone(raw)
      } else if (typeof raw === 'function') raw()
      else this.#handle(raw)
    }
  }

  /** @param {any} raw */
  #handle(raw) {
    try {
      const command = this.codec.command(raw)
      if (this.unanswered === 0 || command.method === 'publish') return dispatch(this, command)
      this.#postpone(raw)
    } catch (error) {
      this.failInOrder(0, error)
    }
  }

  /** Fails after the replies to earlier commands. @param {number} id @param {Error} error @param {string} [channel] */
  failInOrder(id, error, channel) {
    if (this.unanswered === 0) return this.fail(id, error, channel)
    this.#postpone(() => this.fail(id, error, channel))
  }

  /** @param {any} raw command or function */
  #postpone(raw) {
    if (this.queue === null || this.queue === HELD) this.queue = []
    const queue = /** @type {any[]} */ (this.queue)
    queue.push(raw)
    if (queue.length % CHECK_INTERVAL !== 0) return
    let bytes = 0
    for (const queued of queue)
      bytes += (typeof queued === 'function' ? 0 : this.codec.size(queued)) + ENTRY_OVERHEAD
    const { message_size_limit } = this.context.config.websocket
    if (bytes > message_size_limit * MAX_QUEUED_MESSAGES) this.close(disconnects.tooManyRequests)
  }

  #block() {
    this.queue ??= HELD
  }

  /** Defers the reply to `resume`. Later commands wait if too many are pending. */
  hold() {
    this.underway++
    if (this.underway >= this.#concurrency) this.#block()
  }

  /** As `hold`, and no later command starts before `resumeAll`, whatever the concurrency. */
  holdAll() {
    this.underway += ALL
    this.#block()
  }

  /** @param {number} id @param {() => void} work as for `resume` */
  resumeAll(id, work) {
    this.underway -= ALL
    this.#finish(id, work, true)
  }

  /** Maximum pending commands; 1 until connected. */
  get #concurrency() {
    return this.state === State.CONNECTED ? this.context.config.client.concurrency || 1 : 1
  }

  /**
   * Replies to a held command, then handles the queue.
   * @param {number} id @param {() => void} work not called after a disconnect
   */
  resume(id, work) {
    this.underway--
    this.#finish(id, work, true)
  }

  /** @param {number} id @param {() => void} work @param {boolean} advance whether the queue may continue */
  #finish(id, work, advance) {
    if (this.state === State.CLOSED) return
    const continues = advance && this.underway < this.#concurrency
    const queued = continues ? this.queue : null
    if (continues) this.queue = null
    const { replies } = this.context
    // Within `receive`: `hub.prepare` may call back synchronously.
    const nested = replies.owner === this
    if (!nested) replies.open(this)
    try {
      work()
    } catch (error) {
      this.fail(id, error)
    }
    try {
      if (queued && queued.length > 0) this.#handleAll(queued)
    } catch (error) {
      this.fail(0, error)
    }
    if (!nested) replies.flush()
  }

  /** The broker keeps publishes in order, so later ones do not wait. Other commands wait for all pending replies. */
  publishSent() {
    this.unanswered++
    if (this.unanswered >= MAX_UNANSWERED) this.#block()
  }

  /** @param {number} id @param {() => void} work as for `resume` */
  publishAnswered(id, work) {
    this.unanswered--
    this.#finish(id, work, this.unanswered === 0 || this.queue === null)
  }

  /** Sends an error reply; a Disconnect closes. @param {number} id @param {Error} error @param {string} [channel] */
  fail(id, error, channel) {
    if (error instanceof Disconnect) return this.close(error)
    const { log, refusals, rateLimits } = this.context
    const expected = error instanceof ReplyError || error instanceof CallFailed
    if (!expected) log.error({ err: error, client: this.id }, 'command failed')
    const known = error instanceof ReplyError ? error : errors.internal
    refusals.command(known, reasonOf(known), this, channel)
    this.send(this.codec.error(id, known))
    this.extra?.catchUps?.failed(id)
    subscribeEnds(this, id)
    if (rateLimits?.errorSent(this, known)) this.close(disconnects.tooManyErrors)
  }

  /** @param {Encoded} message */
  send(message) {
    const { replies } = this.context
    if (replies.owner === this) replies.add(message)
    else this.transmit(message, 1)
  }

  /** @param {Encoded} frame @param {number} messages in the frame */
  transmit(frame, messages) {
    if (this.state === State.CLOSED) return
    this.transport.traffic.sent(messages, sizeOf(frame))
    this.transport.send(this, frame)
  }

  /** @param {string} topic */
  follow(topic) {
    this.transport.follow(this, topic)
  }

  /** @param {string} topic */
  unfollow(topic) {
    this.transport.unfollow(this, topic)
  }

  ping() {
    if (!this.codec.unidirectional) this.traits |= Trait.AWAITS_PONG
    if (this.traits & Trait.FRAME_PINGS) {
      this.transport.traffic.sent(1, 0)
      this.transport.framePing(this)
    } else this.send(this.codec.ping)
  }

  pong() {
    // A second pong for one ping is an error too (client protocol).
    if (!(this.traits & Trait.AWAITS_PONG) || this.traits & Trait.FRAME_PINGS)
      return this.close(disconnects.badRequest)
    this.traits &= ~Trait.AWAITS_PONG
  }

  framePong() {
    if (!(this.traits & Trait.FRAME_PINGS)) return
    this.transport.traffic.received(1, 0)
    this.traits &= ~Trait.AWAITS_PONG
  }

  checkPong() {
    if (this.traits & Trait.AWAITS_PONG) this.close(disconnects.noPong)
  }

  closeIfStale() {
    if (this.state < State.CONNECTED || this.state === State.REFUSED) this.close(disconnects.stale)
  }

  subscription(/** @type {string} */ channel) {
    return find(this.subscriptions, channel)
  }

  get subscriptionCount() {
    return count(this.subscriptions)
  }

  /** Subscriptions and catch-ups, for `client.channel_limit`. */
  get channelCount() {
    return count(this.subscriptions) + (this.extra?.catchUps?.size ?? 0)
  }

  /** @param {Subscription} subscription */
  addSubscription(subscription) {
    this.subscriptions = add(this.subscriptions, subscription)
  }

  /** Keeps presence, sends no leave: another subscription follows. @param {Subscription} subscription */
  detachSubscription({ channel, cohort, events, details }) {
    if (details.expiry !== null) this.context.timers.cancel(details.expiry)
    this.subscriptions = remove(this.subscriptions, channel.name)
    this.context.hub.leave(this, channel, cohort, events)
  }

  /** Ends a subscription without a push to the client. @param {Subscription} subscription */
  removeSubscription(subscription) {
    const { name } = subscription.channel
    const { broker } = this.context
    if (subscription.is(Kind.PRESENT)) broker.presence.remove(name, this.id)
    if (subscription.is(MAPPED)) this.context.presenceMaps.leave(this, subscription)
    if (subscription.is(Kind.POLL)) this.extra?.polls?.end(this, name)
    const info = subscription.is(Kind.ANNOUNCED) ? this.clientInfo(subscription.details.info) : ''
    this.detachSubscription(subscription)
    if (info) broker.pubsub.announce(name, info, false)
  }

  /** @param {Subscription} subscription @param {{code: number, reason: string}} unsubscribe */
  unsubscribe(subscription, { code, reason }) {
    const { name } = subscription.channel
    this.removeSubscription(subscription)
    this.context.traffic.add('unsubscribes', code)
    this.context.lifecycle?.unsubscribed(this, name, code, reason)
    this.send(this.codec.unsubscribed(name, code, reason))
  }

  /**
   * Ends the catch-up of a map, if there is one.
   * @param {string} channel @param {{code: number, reason: string}} unsubscribe
   */
  refuseCatchUp(channel, { code, reason }) {
    if (!this.extra?.catchUps?.has(channel)) return
    this.extra.catchUps.end(channel)
    this.context.traffic.add('unsubscribes', code)
    this.send(this.codec.unsubscribed(channel, code, reason))
  }

  /** A subscription missed publications that the hub cannot recover. @param {string} channel */
  positionLost(channel) {
    const subscription = this.subscription(channel)
    if (!subscription) return
    if (subscription.is(Kind.SERVER_SIDE)) this.close(disconnects.insufficientState)
    else this.unsubscribe(subscription, unsubscribes.insufficientState)
  }

  /** @param {Publication[]} [publications] @returns {boolean} whether the client's codec can encode them */
  canReceive(publications = []) {
    return this.codec.binary || publications.every(({ json }) => json)
  }

  /** A binary payload cannot be sent to a JSON client. */
  inappropriateProtocol() {
    this.close(disconnects.inappropriateProtocol)
  }

  /** @param {string} channelInfo raw JSON, '' if none @returns {string} ClientInfo as JSON text */
  clientInfo(channelInfo) {
    let text = `{"user":${JSON.stringify(this.user)},"client":"${this.id}"`
    if (this.info) text += `,"conn_info":${this.info}`
    if (channelInfo) text += `,"chan_info":${channelInfo}`
    return `${text}}`
  }

  /** @param {Disconnect} disconnect @param {Error} [cause] the error behind the disconnect */
  close(disconnect, cause = disconnect) {
    if (this.state === State.CLOSED) return
    const { replies, refusals, hub } = this.context
    if (disconnect !== disconnects.slow && disconnect !== disconnects.noPong) flush(this.subscriptions, hub)
    if (replies.owner === this) replies.flush()
    // Closed by a batched payload that the codec cannot encode, or a full outgoing queue.
    if (this.closed) return
    // The command counts a failed connect.
    if (this.state === State.OPEN && disconnect !== disconnects.shutdown)
      refusals.add(reasonOf(disconnect), this)
    this.transport.close(this, disconnect, cause)
    this.ended(disconnect.code, disconnect)
  }

  get closed() {
    return this.state === State.CLOSED
  }

  /**
   * The connection is closed or closing: nothing more is sent, and `release` follows.
   * @param {number} [code] close code; 0: none
   * @param {{code: number, reason: string}} [end] for the lifecycle, on a close by the gateway
   */
  ended(code = 0, end = disconnects.connectionClosed) {
    if (this.state === State.CLOSED) return
    const wasConnected = this.state === State.CONNECTED
    if (this.extra !== null) this.extra.ended(end)
    this.state = State.CLOSED
    const { sessions, traffic, timers, broker, acks } = this.context
    acks?.ended(this)
    if (this.expiry !== null) timers.cancel(this.expiry)
    traffic.add('closes', code)
    this.queue = null
    // Not in `release`: a user that reconnects before it would be refused permanently.
    if (this.traits & Trait.USER_CLAIMED) broker.control.releaseUser(this.user)
    sessions.closed(this, wasConnected)
  }

  /** Releases the ended session's subscriptions; deferred if thousands end together. */
  release() {
    const { lifecycle } = this.context
    const subscriptions = list(this.subscriptions)
    for (const subscription of subscriptions) this.removeSubscription(subscription)
    if (lifecycle === null || this.extra === null || this.extra.connectedAt === 0) return
    const channels = subscriptions.map(({ channel }) => channel.name)
    lifecycle.disconnected(this, this.extra.end, channels)
  }
}
