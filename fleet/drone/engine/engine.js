// The engine of one process of a drone: holds connections, checks what they receive, and publishes.
//
//   pool.js            when each connection is opened; read-pause.js   fuller turns while only pings come
//   subscriptions.js   what each subscription must receive
//   publisher.js       when messages are due; lane.js   publishes them in order; payload.js   messages and ledgers
//   figures.js         counters, distributions, and the clock's offset to the gateway's; token.js   connection tokens
//
// May import: drone/transport, statistics/, channel-template. Promises: every message is counted once, as received,
// late, duplicate or lost; an ordinary publication allocates no object.

import { setTimeout as sleep } from 'node:timers/promises'
import { parseTemplate } from '../../channel-template.js'
import { Dialer } from '../transport/dialer.js'
import { Clock, Figures, faultText } from './figures.js'
import { isPush, PayloadReader, startNumber } from './payload.js'
import { Pool, PoolTimer } from './pool.js'
import { Publisher } from './publisher.js'
import { ReadPause } from './read-pause.js'
import { Subscriptions } from './subscriptions.js'
import { makeToken } from './token.js'

/** @typedef {import('../../schema.js').Settings} Settings */
/** @typedef {import('../../schema.js').Ledger} Ledger */
/** @typedef {import('../transport/dialer.js').Connection} Connection */

/** Maximum wait for closed connections when the engine stops, ms. */
const CLOSE_TIMEOUT = 5000
const CLOSE_CHECK = 20
/** Time for messages under way when a publisher is replaced, ms. */
const DRAIN = 5000
/** The same when the engine stops, ms. */
const LAST_DRAIN = 1000
/** Publishers whose ledgers are kept. */
const MAX_PUBLISHERS = 8
/** Settings whose change reopens all connections. */
const DIAL_SETTINGS = ['targets', 'transport', 'first', 'channels', 'recover', 'user', 'addresses', 'ports']
/** Settings whose change starts a new publisher, with sequences from 1; others change the current one. */
const PUBLISHER_SETTINGS = [
  'via',
  'flat',
  'lanes',
  'channels',
  'part',
  'parts',
  'publishFrom',
  'targets',
  'user',
]

/**
 * Holds connections, checks what they receive, and publishes, as its settings specify. engine-process.js calls `apply`,
 * `subscribe`, `cut`, `sample`, `finish`, `ledgers`, `reckon` and `stop` by name, for the parent process.
 */
export class Engine {
  options
  subscribed = 0
  /** When the last publication came, Unix ms. */
  lastAt = 0
  /** First slot whose subscriptions subscribe() has not requested. */
  #nextToSubscribe = 0
  /** @type {Settings | null} */
  #settings = null
  /** The applied DIAL_SETTINGS as JSON. */
  #dialKey = ''
  /** @type {import('../../channel-template.js').ChannelTemplate | null} */
  #users = null
  /** @type {Dialer | null} */
  #dialer = null
  clock = new Clock()
  figures = new Figures()
  #counters = this.figures.counters
  #subscriptions = new Subscriptions([], false, this.#counters)
  /** Subscribe replies that each slot waits for. @type {number[]} */
  #pendingReplies = []
  #pool = new Pool(this)
  /** Connections that were dialled and are not closed yet. */
  #unclosed = 0
  /** All since publishing began, for their ledgers; only the last one may be active. @type {Publisher[]} */
  #publishers = []
  /** PUBLISHER_SETTINGS of the active publisher as JSON; '': none is active. */
  #publisherKey = ''
  #payload = new PayloadReader()
  #readPause = new ReadPause()
  #timer

  /**
   * @param {object} options @param {string[]} options.allow @param {string} [options.apiKey]
   * @param {string} [options.tokenSecret]
   * @param {number} options.machine number of the drone, the `m` of payloads
   * @param {'after' | 'with' | 'later'} [options.subscribe] two-way connections request their subscriptions after the
   *   connect reply (default), in one frame with the connect request, or when `subscribe` is called
   */
  constructor(options) {
    this.options = options
    this.#timer = new PoolTimer(this.#pool, () => this.clock.now())
  }

  /** @param {Settings} settings @throws {Error} one line: invalid settings; the previous ones stay in force */
  apply(settings) {
    const { connections, channels, user, recover, targets, transport, publish } = settings
    const { apiKey, tokenSecret } = this.options
    const dialKey = JSON.stringify(settings, DIAL_SETTINGS)
    const templates = channels.map(parseTemplate)
    const users = user ? parseTemplate(user) : null
    if (users && !tokenSecret) throw new Error('setting user needs a token secret (--token-secret)')
    if (publish) parseTemplate(publish.channels)
    if (publish?.via === 'api' && !apiKey) throw new Error('publish_via api needs an API key (--api-key)')
    if (dialKey !== this.#dialKey) {
      // A new drone has neither targets nor connections yet.
      const dialer = targets.length + connections > 0 ? this.dialer(settings, transport, this) : null
      this.#resize(0)
      this.#dialer = dialer
      this.#subscriptions = new Subscriptions(templates, recover, this.#counters)
    }
    this.#dialKey = dialKey
    this.#settings = settings
    this.#users = users
    // For concurrency, rate, churn and backoff.
    Object.assign(this.#pool, settings)
    this.#resize(connections)
    this.#timer.hasten()
    this.#subscriptions.publishing(settings.publishFrom, this.clock.now())
    this.#applyPublishing(settings)
  }

  /**
   * @param {Settings} settings @param {import('../../schema.js').Transport} transport
   * @param {import('../transport/dialer.js').Listener} listener
   */
  dialer(settings, transport, listener) {
    const { allow } = this.options
    return new Dialer({ ...settings, transport, allow }, listener, this.#counters)
  }

  /** @param {Settings} settings */
  #applyPublishing(settings) {
    const { publish, publishFrom, targets, user } = settings
    const publisherKey =
      publish && publish.rate > 0 && publishFrom > 0
        ? JSON.stringify({ ...publish, publishFrom, targets, user }, PUBLISHER_SETTINGS)
        : ''
    const withPublish = /** @type {import('./publisher.js').Settings} */ (settings)
    if (publisherKey !== this.#publisherKey) {
      this.#endPublishing(DRAIN)
      const since = publishFrom && startNumber(publishFrom)
      this.#publishers = this.#publishers.filter(({ start }) => start >= since).slice(1 - MAX_PUBLISHERS)
      if (publisherKey) this.#publishers.push(new Publisher(this, withPublish))
    }
    this.#publisherKey = publisherKey
    if (publisherKey) this.#publishers.at(-1)?.change(withPublish)
  }

  /** @param {number} drain ms */
  #endPublishing(drain) {
    return Promise.all(this.#publishers.map(publisher => publisher.stop(drain)))
  }

  /** @param {number} wanted */
  #resize(wanted) {
    const pool = this.#pool
    for (let slot = pool.wanted - 1; slot >= wanted; slot--) this.shut(slot, 'none')
    for (let slot = pool.wanted; slot < wanted; slot++) this.#subscriptions.begin(slot)
    pool.resize(wanted)
  }

  /** @param {number} number of a connection @returns {{token: string} | null} for its connect request */
  token(number) {
    const users = this.#users
    return users && { token: makeToken(users.at(number), this.options.tokenSecret ?? '') }
  }

  /** @param {number} slot */
  dial(slot) {
    const number = /** @type {Settings} */ (this.#settings).first + slot
    const dialer = /** @type {Dialer} */ (this.#dialer)
    const withConnect = !dialer.oneWay && this.options.subscribe === 'with'
    const requests = dialer.oneWay || withConnect ? this.#subscriptions.requests(slot, number) : []
    const subs = dialer.oneWay && {
      subs: Object.fromEntries(requests.map(request => [request.channel, request])),
    }
    this.#pendingReplies[slot] = this.#subscriptions.width
    this.#unclosed++
    const connection = dialer.dial(slot, number, { ...this.token(number), ...subs })
    if (withConnect && requests.length > 0) connection.send(this.#commands(requests))
    return connection
  }

  /** @param {object[]} requests of subscriptions, in the order of the templates; the id of the first is 2 */
  #commands(requests) {
    return requests.map((subscribe, place) => JSON.stringify({ id: place + 2, subscribe })).join('\n')
  }

  /**
   * Requests the subscriptions of some more connections, with the option `subscribe: 'later'`.
   * @param {number} connections at most
   * @returns {{left: number, subscribed: number, refused: number}} `left`: connections whose subscriptions are not
   *   requested
   */
  subscribe(connections) {
    const first = this.#settings?.first ?? 0
    for (let n = 0; n < connections && this.#nextToSubscribe < this.#pool.wanted; this.#nextToSubscribe++) {
      const slot = this.#nextToSubscribe
      if (!this.#pool.isOpen(slot)) continue
      n++
      this.#pendingReplies[slot] = this.#subscriptions.width
      this.#pool.at(slot)?.send(this.#commands(this.#subscriptions.requests(slot, first + slot)))
    }
    const { refused } = this.#counters
    return { left: this.#pool.wanted - this.#nextToSubscribe, subscribed: this.subscribed, refused }
  }

  /** @param {Connection} connection @param {number} code @param {string} reason */
  closed(connection, code, reason) {
    this.#unclosed--
    if (this.#pool.at(connection.slot) === connection) this.fail(connection.slot, faultText({ code, reason }))
  }

  /** A connection failed or was lost. @param {number} slot @param {string} reason */
  fail(slot, reason) {
    this.#counters[this.#pool.isOpen(slot) ? 'ended' : 'failed']++
    this.figures.fault(reason || 'closed')
    this.#leave(slot, 'lost')?.close()
  }

  /**
   * Closes the connection of a slot. `then` says when it reopens: see Pool.leave().
   * @param {number} slot @param {'lost' | 'again' | 'none'} [then] @param {'close' | 'reset'} [how]
   */
  shut(slot, then = 'again', how = 'close') {
    if (this.#pool.isOpen(slot)) this.#counters.closed++
    this.#leave(slot, then)?.[how]()
  }

  /** @param {number} slot @param {'lost' | 'again' | 'none'} then */
  #leave(slot, then) {
    this.#subscriptions.away(slot)
    const connection = this.#pool.leave(slot, then, this.clock.now())
    this.#timer.hasten()
    return connection
  }

  /** @param {Connection} connection @param {Buffer} buffer @param {number} start @param {number} end */
  message(connection, buffer, start, end) {
    const { slot } = connection
    if (this.#pool.at(slot) !== connection) return
    // A ping is `{}`; every other message is longer.
    if (end - start < 4) {
      this.#counters.pings++
      this.#pool.pinged(slot, this.clock.now())
      if (this.#pool.pong) connection.send('{}')
      // Nothing is expected of which the time is measured.
      const isCalm = this.#subscriptions.width === 0 && this.#publisherKey === '' && this.#pool.isIdle
      if (isCalm) this.#readPause.request()
      return
    }
    if (isPush(buffer, start) && this.#receivePublication(slot, buffer, start, end)) return
    let message
    try {
      message = JSON.parse(buffer.toString('utf8', start, end))
    } catch {
      return this.#countDamaged()
    }
    this.#receiveOther(connection, message.push ?? message)
  }

  #countDamaged() {
    this.#counters.received++
    this.#counters.damaged++
  }

  /**
   * @param {number} slot @param {Buffer} buffer @param {number} start @param {number} end
   * @returns {boolean} false: it contains no complete payload
   */
  #receivePublication(slot, buffer, start, end) {
    if (!this.#payload.read(buffer, start, end)) return false
    const { t, s, c, e, m, o, again, offset } = this.#payload
    const { clock, figures } = this
    const now = clock.now()
    this.lastAt = now
    // `t` and `o` are µs; `o` leads from the publisher's clock to the gateway's.
    if (m === this.options.machine) figures.probe.record(now - t / 1000)
    else figures.latency.record(now + clock.state.offset - (t + o) / 1000)
    const i = this.#subscriptions.find(slot, c)
    if (i >= 0) this.#subscriptions.receive(i, e, s, again, offset)
    else {
      this.#counters.received++
      figures.fault('publication of another channel')
    }
    return true
  }

  /** Anything but a publication with a payload. @param {Connection} connection @param {any} message reply or push */
  #receiveOther(connection, message) {
    const { slot } = connection
    if (message.connect) this.#onConnectReply(connection, message.connect)
    else if (message.id === 1) this.fail(slot, `connect: ${faultText(message.error ?? { code: 0 })}`)
    else if (message.id > 1) this.#onSubscribeReply(slot, message.id - 2, message)
    else if (message.disconnect) this.fail(slot, faultText(message.disconnect))
    else if (message.unsubscribe) {
      this.#counters.refused++
      this.fail(slot, `unsubscribed: ${faultText(message.unsubscribe)}`)
    } else if (message.pub) this.#countDamaged()
  }

  /** @param {Connection} connection @param {any} connect reply or push */
  #onConnectReply(connection, { time, ping = 0, pong = false, subs }) {
    const { slot, number } = connection
    const now = this.clock.now()
    if (time) this.clock.learn(time, this.#pool.began(slot), now)
    Object.assign(this.#pool, { ping, pong })
    const { oneWay } = connection.dialer
    const { subscribe } = this.options
    if (!oneWay && subscribe === 'with' && this.#subscriptions.width > 0) return
    const requests = subscribe === 'later' ? [] : this.#subscriptions.requests(slot, number)
    if (requests.length === 0) this.#onReady(slot)
    else if (!oneWay) connection.send(this.#commands(requests))
    else
      requests.forEach(({ channel }, place) => {
        const subscribe = subs?.[channel]
        const error = { code: 0, message: 'not among the subscriptions' }
        this.#onSubscribeReply(slot, place, subscribe ? { subscribe } : { error })
      })
  }

  /** @param {number} slot @param {number} place of the subscription @param {any} reply */
  #onSubscribeReply(slot, place, { subscribe, error }) {
    if (this.#pendingReplies[slot] === 0 || place >= this.#subscriptions.width) return
    if (error) {
      this.#counters.refused++
      if (error.temporary) return this.fail(slot, `subscribe: ${faultText(error)}`)
      this.figures.fault(`subscribe: ${faultText(error)}`)
    } else {
      this.subscribed++
      const i = slot * this.#subscriptions.width + place
      this.#subscriptions.answered(i, subscribe, this.clock.now(), this.#settings?.publishFrom ?? 0)
      for (const { data, offset } of subscribe.publications ?? []) {
        const bytes = Buffer.from(JSON.stringify({ data, offset }))
        if (!this.#receivePublication(slot, bytes, 0, bytes.length)) this.#countDamaged()
      }
    }
    if (--this.#pendingReplies[slot] === 0 && this.options.subscribe !== 'later') this.#onReady(slot)
  }

  /** The connection and its subscriptions are confirmed. @param {number} slot */
  #onReady(slot) {
    const now = this.clock.now()
    this.figures.connect.record(now - this.#pool.began(slot))
    this.#counters.opened++
    if (this.#pool.opened(slot, now)) this.#counters.reconnects++
  }

  /**
   * Ends connections, which then reconnect like lost ones.
   * @param {number} share 0 to 1 of the open connections @param {'close' | 'reset'} how
   * @returns {number} connections ended
   */
  cut(share, how) {
    const slots = this.#pool.draw(Math.round(share * this.#pool.open))
    for (const slot of slots) this.shut(slot, 'lost', how)
    return slots.length
  }

  /** @returns {import('../../schema.js').EngineSample} distributions and faults are those since the last call */
  sample() {
    const { wanted, opening, open } = this.#pool
    return { ...this.figures.sample(), gauges: { wanted, opening, open }, clock: this.clock.state }
  }

  /**
   * Ends publishing, whatever the settings are.
   * @param {number} drain ms for messages that are due or under way
   * @returns {Promise<Ledger[]>} final: nothing is under way any more
   */
  async finish(drain) {
    await this.#endPublishing(drain)
    return this.ledgers()
  }

  /**
   * A publisher that is ending still sends due messages: its ledger is final when it has ended.
   * @returns {Promise<Ledger[]>} of all publishers here since publishing began
   */
  async ledgers() {
    await Promise.all(this.#publishers.map(({ end }) => end))
    return this.#publishers.map(publisher => publisher.ledger())
  }

  /** @param {Ledger[]} ledgers @returns {import('../../schema.js').Reckoning} @throws {Error} an invalid ledger */
  reckon(ledgers) {
    return this.#subscriptions.reckon(ledgers, this.#pool.wanted, this.#settings?.first ?? 0)
  }

  /**
   * Ends publishing and closes all connections; resolves when they are closed.
   * @param {boolean} [exits] the process ends then: the kernel closes sockets that need no message, thousands at once
   */
  async stop(exits = false) {
    this.#timer.stop()
    if (exits && this.#dialer?.closesSilently) {
      this.#counters.closed += this.#pool.abandon()
      this.#unclosed = 0
    } else this.#resize(0)
    await this.#endPublishing(LAST_DRAIN)
    for (let left = CLOSE_TIMEOUT; this.#unclosed > 0 && left > 0; left -= CLOSE_CHECK)
      await sleep(CLOSE_CHECK)
  }
}
