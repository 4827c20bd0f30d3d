// Session: one client of this worker, as the state machine of the Centrifuge protocol.
// For: commands, replies and pushes, subscriptions, pings, expiry. Each command has a function in commands/.
// May import auth, hub, protocol and the layers below; transports only through the contract in transport.js.
// Promises: replies have the order of the commands; nothing is sent after the close; an ended session releases all.

import { Disconnect, disconnects, errors, ReplyError, reasonOf, unsubscribes } from '../../base/errors.js'
import { sizeOf } from '../../metrics/traffic.js'
import { CallFailed } from '../hooks/contract.js'
import { dispatch } from './commands/index.js'
import { SessionExtra } from './extra.js'
import { State, Trait } from './state.js'
import { add, count, find, flush, Kind, list, remove, subscribeEnds } from './subscription.js'

/** @import { Publication } from '../../channels/broker/contract.js' */
/** @import { Codec, Encoded } from '../protocol/contract.js' */
/** @import { Timer } from '../../base/timers.js' */
/** @import { Transport } from './transport.js' */
/** @import { Subscription, Subscriptions } from './subscription.js' */

/** Maximum bytes of queued commands, in multiples of the longest message (`websocket.message_size_limit`). */
const MAX_QUEUED_MESSAGES = 16
/** Queued commands between two checks of that limit. */
const CHECK_INTERVAL = 64
/** Memory of a queue entry besides its command, bytes. */
const ENTRY_OVERHEAD = 16

/**
 * Whether the commands of one client that wait for an earlier one are too many. Called after each new one.
 * @param {any[]} queue raw commands, and postponed functions @param {Codec} codec of the client
 * @param {{websocket: {message_size_limit: number}}} config
 */
export function exceedsLimit(queue, codec, { websocket }) {
  if (queue.length % CHECK_INTERVAL !== 0) return false
  let bytes = 0
  for (const queued of queue)
    bytes += (typeof queued === 'function' ? 0 : codec.size(queued)) + ENTRY_OVERHEAD
  return bytes > websocket.message_size_limit * MAX_QUEUED_MESSAGES
}

/** Maximum publishes of one client without an answer of the broker. */
const MAX_UNANSWERED = 1024

/** The queue of a held session until a command arrives. Shared by all sessions and always empty. @type {any[]} */
const HELD = []

/** One client of this worker. It has no socket: a transport carries its messages. */
export class Session {
  /**
   * @param {Transport} transport shared by all sessions of its kind @param {any} connection the transport's handle
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
    /** A secret UUID by which POSTs find the session; '' for transports without POSTs. */
    this.sessionId = ''
    this.user = ''
    /** Connection info as JSON text, '' if none. */
    this.info = ''
    /** @type {Timer | null} */
    this.expiry = null
    /** @type {Subscriptions} */
    this.subscriptions = null
    /** @type {any[] | null} raw commands and postponed functions behind an unanswered command; null: not held */
    this.queue = null
    /** Publishes that the broker has not answered yet. */
    this.unanswered = 0
    /** Other commands under way: `hold` was called, `resume` not yet. */
    this.underway = 0
    /** When it has connected, ms of performance.now(). */
    this.since = 0
    /** @type {SessionExtra | null} */
    this.extra = null
    /** Slot of Heartbeat, and index in it; -1: in none. */
    this.slot = 0
    this.slotIndex = -1
  }

  /** Of the peer, '' if unknown. @returns {string} */
  remoteAddress() {
    return this.transport.remoteAddress(this)
  }

  /** @returns {SessionExtra} */
  needExtra() {
    return (this.extra ??= new SessionExtra())
  }

  get context() {
    return this.transport.context
  }

  get connected() {
    return this.state === State.CONNECTED
  }

  // Receiving: replies leave in the order of the commands.
  //
  //   receive -> split -> handle -> dispatch -+-> reply -> ReplyBatch, until the frame is done
  //                         |                 +-> hold ... answer of broker or hook ... resume -> reply, then the queue
  //                         +-> queue: too many are held, or publishes are unanswered; another publish passes, and pongs

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

  /** @param {any[]} raws raw commands and postponed functions */
  #handleAll(raws) {
    for (const raw of raws) {
      // Commands after a refused connect are dropped without an answer.
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

  /** As `fail`, after the replies to earlier commands. @param {number} id @param {Error} error @param {string} [channel] */
  failInOrder(id, error, channel) {
    if (this.unanswered === 0) return this.fail(id, error, channel)
    this.#postpone(() => this.fail(id, error, channel))
  }

  /** Queues a command or a function. @param {any} raw */
  #postpone(raw) {
    if (this.queue === null || this.queue === HELD) this.queue = []
    const queue = /** @type {any[]} */ (this.queue)
    queue.push(raw)
    if (exceedsLimit(queue, this.codec, this.context.config)) this.close(disconnects.tooManyRequests)
  }

  /** Queues the commands that follow. */
  #block() {
    this.queue ??= HELD
  }

  /** The current command is answered later, by `resume`. The commands behind it wait if too many are under way. */
  hold() {
    this.underway++
    if (this.underway >= this.#concurrency) this.#block()
  }

  /** Commands under way with which the next one waits. A connect is always alone. */
  get #concurrency() {
    return this.state === State.CONNECTED ? this.context.config.client.concurrency || 1 : 1
  }

  /**
   * Answers the command that called `hold`, then handles the queue.
   * @param {number} id
   * @param {() => void} work not called after the client has left
   */
  resume(id, work) {
    this.underway--
    this.#finish(id, work, true)
  }

  /** @param {number} id @param {() => void} work @param {boolean} advance whether the queue may go on */
  #finish(id, work, advance) {
    if (this.state === State.CLOSED) return
    const goesOn = advance && this.underway < this.#concurrency
    const queued = goesOn ? this.queue : null
    if (goesOn) this.queue = null
    const { replies } = this.context
    // Within `receive`: `hub.prepare` may call back at once.
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

  /**
   * A publish was sent to the broker. The broker keeps the order, so a following publish does not wait for the answer;
   * every other command waits for all answers.
   */
  publishSent() {
    this.unanswered++
    if (this.unanswered >= MAX_UNANSWERED) this.#block()
  }

  /** The broker has answered a publish. @param {number} id @param {() => void} work as for `resume` */
  publishAnswered(id, work) {
    this.unanswered--
    this.#finish(id, work, this.unanswered === 0 || this.queue === null)
  }

  /** Answers a command; a Disconnect ends all. @param {number} id @param {Error} error @param {string} [channel] */
  fail(id, error, channel) {
    if (error instanceof Disconnect) return this.close(error)
    const { log, refusals } = this.context
    const expected = error instanceof ReplyError || error instanceof CallFailed
    if (!expected) log.error({ err: error, client: this.id }, 'command failed')
    const known = error instanceof ReplyError ? error : errors.internal
    refusals.command(known, reasonOf(known), this, channel)
    this.send(this.codec.error(id, known))
    subscribeEnds(this, id)
  }

  // Sending

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

  // Subscriptions

  subscription(/** @type {string} */ channel) {
    return find(this.subscriptions, channel)
  }

  get subscriptionCount() {
    return count(this.subscriptions)
  }

  /** @param {Subscription} subscription */
  addSubscription(subscription) {
    this.subscriptions = add(this.subscriptions, subscription)
  }

  /**
   * Removes a subscription from session and hub only: presence stays, and no leave is announced. Enough when another
   * subscription to the channel follows.
   * @param {Subscription} subscription
   */
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
    const info = subscription.is(Kind.ANNOUNCED) ? this.clientInfo(subscription.details.info) : ''
    this.detachSubscription(subscription)
    if (info) broker.pubsub.announce(name, info, false)
  }

  /**
   * Ends a subscription with a push to the client.
   * @param {Subscription} subscription
   * @param {{code: number, reason: string}} unsubscribe
   */
  unsubscribe(subscription, { code, reason }) {
    const { name } = subscription.channel
    this.removeSubscription(subscription)
    this.context.traffic.add('unsubscribes', code)
    this.context.lifecycle?.unsubscribed(this, name, code, reason)
    this.send(this.codec.unsubscribed(name, code, reason))
  }

  /** A positioned subscription missed publications that the hub cannot recover. @param {string} channel */
  positionLost(channel) {
    const subscription = this.subscription(channel)
    if (!subscription) return
    if (subscription.is(Kind.SERVER_SIDE)) this.close(disconnects.insufficientState)
    else this.unsubscribe(subscription, unsubscribes.insufficientState)
  }

  /** @param {Publication[]} [publications] @returns {boolean} whether the client's codec can carry them */
  canReceive(publications = []) {
    return this.codec.binary || publications.every(({ json }) => json)
  }

  /** The channel carries binary data, which the client's JSON codec cannot send. */
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

  // The end

  /** @param {Disconnect} disconnect @param {Error} [cause] the error behind the disconnect */
  close(disconnect, cause = disconnect) {
    if (this.state === State.CLOSED) return
    const { replies, refusals, hub } = this.context
    if (disconnect !== disconnects.slow && disconnect !== disconnects.noPong) flush(this.subscriptions, hub)
    if (replies.owner === this) replies.flush()
    // That may have closed the session: a payload that its codec cannot carry does, and a full outgoing queue.
    if (this.closed) return
    // A failed connect is counted by its command.
    if (this.state === State.OPEN && disconnect !== disconnects.shutdown)
      refusals.add(reasonOf(disconnect), this)
    this.transport.close(this, disconnect, cause)
    this.ended(disconnect.code, disconnect)
  }

  get closed() {
    return this.state === State.CLOSED
  }

  /**
   * The connection is closed or closing: nothing is sent any more, and `release` follows.
   * @param {number} [code] close code; 0: the client left without one
   * @param {{code: number, reason: string}} [end] for the lifecycle, if the gateway closes the connection
   */
  ended(code = 0, end = disconnects.connectionClosed) {
    if (this.state === State.CLOSED) return
    const wasConnected = this.state === State.CONNECTED
    if (this.extra !== null) this.extra.ended(end)
    this.state = State.CLOSED
    const { sessions, traffic, timers, broker } = this.context
    if (this.expiry !== null) timers.cancel(this.expiry)
    traffic.add('closes', code)
    this.queue = null
    // Not in `release`: the user may come back before, and would be refused for good.
    if (this.traits & Trait.USER_CLAIMED) broker.control.releaseUser(this.user)
    sessions.closed(this, wasConnected)
  }

  /** Releases the subscriptions of the ended session. Late if thousands end at once: work is done in slices. */
  release() {
    const { lifecycle } = this.context
    const subscriptions = list(this.subscriptions)
    for (const subscription of subscriptions) this.removeSubscription(subscription)
    // A session that has never connected had no beginning either.
    if (lifecycle === null || this.extra === null || this.extra.connectedAt === 0) return
    const channels = subscriptions.map(({ channel }) => channel.name)
    lifecycle.disconnected(this, this.extra.end, channels)
  }
}
