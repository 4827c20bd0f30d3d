// The engine of one process of a drone: holds connections, checks received messages, and publishes.
//
//   pool.js            when each connection is opened
//   subscriptions.js   expected messages of subscriptions
//   publisher.js       when messages are due; lane.js   publishes them in order; payload.js   messages and ledgers
//   figures.js         counters, distributions, and the clock's offset to the gateway's
//
// May import: drone/transport, statistics/, channel-template. Promises: every message is counted once, as received,
// late, duplicate or lost; an ordinary publication allocates no object.

import { createHmac } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseTemplate } from '../../channel-template.js'
import { Dialer } from '../transport/dialer.js'
import { Clock, Figures, faultText } from './figures.js'
import { isPush, PayloadReader, startNumber } from './payload.js'
import { Pool, PoolTimer, ReadPause } from './pool.js'
import { Publisher } from './publisher.js'
import { Subscriptions } from './subscriptions.js'

/** @import { ChannelTemplate } from '../../channel-template.js' */
/** @import { EngineSample, Ledger, Reconciliation, Settings, Transport } from '../../schema.js' */
/** @import { Connection, Listener } from '../transport/dialer.js' */

/** Maximum wait for closed connections when the engine stops, ms. */
const CLOSE_TIMEOUT = 5000
const CLOSE_CHECK = 20
/** Drain timeouts, ms: of a replaced publisher, and of a stopping engine. */
const DRAIN = 5000
const LAST_DRAIN = 1000
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

/** @param {object} part */
const base64url = part => Buffer.from(JSON.stringify(part)).toString('base64url')
const JWT_HEADER = base64url({ alg: 'HS256', typ: 'JWT' })

/** @param {string} user @param {string} secret @returns {string} JWT that never expires */
function makeToken(user, secret) {
  const text = `${JWT_HEADER}.${base64url({ sub: user })}`
  return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`
}

/** engine-process.js calls `apply`, `cut`, `sample`, `ledgers`, `reconcile` and `stop` by name, for the parent process. */
export class Engine {
  options
  /** @type {Settings | null} */
  #settings = null
  /** The applied DIAL_SETTINGS as JSON. */
  #dialKey = ''
  /** @type {ChannelTemplate | null} */
  #users = null
  /** @type {Dialer | null} */
  #dialer = null
  clock = new Clock()
  figures = new Figures()
  #counters = this.figures.counters
  #subscriptions = new Subscriptions([], false, this.#counters)
  /** Outstanding subscribe replies of each slot. @type {number[]} */
  #pendingReplies = []
  #pool = new Pool(this)
  #unclosed = 0
  /** Since publishing began: the last one may be active, the others have ledgers. @type {Publisher[]} */
  #publishers = []
  /** PUBLISHER_SETTINGS of the active publisher as JSON; '': none is active. */
  #publisherKey = ''
  #payload = new PayloadReader()
  #readPause = new ReadPause()
  #timer

  /**
   * @param {object} options @param {string[]} options.allow @param {string} [options.apiKey]
   * @param {string} [options.tokenSecret] @param {number} options.machine the `m` of payloads
   */
  constructor(options) {
    this.options = options
    this.#timer = new PoolTimer(this.#pool, () => this.clock.now())
  }

  /** @param {Settings} settings @throws {Error} one line: invalid settings; the previous ones still apply */
  apply(settings) {
    const { connections, channels, user, recover, targets, transport, publish } = settings
    const { apiKey, tokenSecret } = this.options
    const dialKey = JSON.stringify(settings, DIAL_SETTINGS)
    const templates = channels.map(parseTemplate)
    const users = user ? parseTemplate(user) : null
    if (users && !tokenSecret) throw new Error('the setting user requires a token secret (--token-secret)')
    if (publish) parseTemplate(publish.channels)
    if (publish?.via === 'api' && !apiKey) throw new Error('publish_via api requires an API key (--api-key)')
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

  /** @param {Settings} settings @param {Transport} transport @param {Listener} listener */
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
    const requests = dialer.oneWay ? this.#subscriptions.requests(slot, number) : []
    const subs = dialer.oneWay && {
      subs: Object.fromEntries(requests.map(request => [request.channel, request])),
    }
    this.#pendingReplies[slot] = this.#subscriptions.width
    this.#unclosed++
    return dialer.dial(slot, number, { ...this.token(number), ...subs })
  }

  /** @param {object[]} requests of subscriptions, in the order of the templates; the id of the first is 2 */
  #commands(requests) {
    return requests.map((subscribe, place) => JSON.stringify({ id: place + 2, subscribe })).join('\n')
  }

  /** @param {Connection} connection @param {number} code @param {string} reason */
  closed(connection, code, reason) {
    this.#unclosed--
    if (this.#pool.at(connection.slot) === connection) this.fail(connection.slot, faultText({ code, reason }))
  }

  /** @param {number} slot of a failed or lost connection @param {string} reason */
  fail(slot, reason) {
    this.#counters[this.#pool.isOpen(slot) ? 'ended' : 'failed']++
    this.figures.fault(reason || 'closed')
    this.#leave(slot, 'lost')?.close()
  }

  /**
   * Closes the connection of a slot. `then`: when it reopens, see Pool.leave().
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
      // No latency is being measured.
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

  /** False: no payload. @param {number} slot @param {Buffer} buffer @param {number} start @param {number} end */
  #receivePublication(slot, buffer, start, end) {
    if (!this.#payload.read(buffer, start, end)) return false
    const { t, s, c, e, m, o, again, offset } = this.#payload
    const { clock, figures } = this
    const now = clock.now()
    // `t` and `o` are µs; `o` is the gateway's clock minus the publisher's.
    if (m === this.options.machine) figures.probe.record(now - t / 1000)
    else figures.latency.record(now + clock.state.offset - (t + o) / 1000)
    const i = this.#subscriptions.find(slot, c)
    if (i >= 0) this.#subscriptions.receive(i, e, s, again, offset)
    else {
      this.#counters.received++
      figures.fault('publication of an unknown channel')
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
    const requests = this.#subscriptions.requests(slot, number)
    if (requests.length === 0) this.#onReady(slot)
    else if (!connection.dialer.oneWay) connection.send(this.#commands(requests))
    else
      requests.forEach(({ channel }, place) => {
        const subscribe = subs?.[channel]
        const error = { code: 0, message: 'subscriptions missing in the connect reply' }
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
      const i = slot * this.#subscriptions.width + place
      this.#subscriptions.answered(i, subscribe, this.clock.now(), this.#settings?.publishFrom ?? 0)
      for (const { data, offset } of subscribe.publications ?? []) {
        const bytes = Buffer.from(JSON.stringify({ data, offset }))
        if (!this.#receivePublication(slot, bytes, 0, bytes.length)) this.#countDamaged()
      }
    }
    if (--this.#pendingReplies[slot] === 0) this.#onReady(slot)
  }

  /** The server has confirmed the connection and its subscriptions. @param {number} slot */
  #onReady(slot) {
    const now = this.clock.now()
    this.figures.connect.record(now - this.#pool.began(slot))
    this.#counters.opened++
    if (this.#pool.opened(slot, now)) this.#counters.reconnects++
  }

  /** Cuts that share of the open connections, which reconnect. @param {number} share @param {'close' | 'reset'} how */
  cut(share, how) {
    const slots = this.#pool.draw(Math.round(share * this.#pool.open))
    for (const slot of slots) this.shut(slot, 'lost', how)
    return slots.length
  }

  /** @returns {EngineSample} distributions and faults since the last call */
  sample() {
    const { wanted, opening, open } = this.#pool
    return { ...this.figures.sample(), gauges: { wanted, opening, open }, clock: this.clock.state }
  }

  /** Final ledgers of all publishers since publishing began: a stopping one still sends due messages. */
  async ledgers() {
    await Promise.all(this.#publishers.map(({ end }) => end))
    return this.#publishers.map(publisher => publisher.ledger())
  }

  /** @param {Ledger[]} ledgers @returns {Reconciliation} @throws {Error} an invalid ledger */
  reconcile(ledgers) {
    return this.#subscriptions.reconcile(ledgers, this.#pool.wanted, this.#settings?.first ?? 0)
  }

  /** @param {boolean} [exits] the process exits next: the kernel closes thousands of sockets that need no message */
  async stop(exits = false) {
    this.#timer.stop()
    if (exits && this.#dialer?.closesSocketOnly) {
      this.#counters.closed += this.#pool.abandon()
      this.#unclosed = 0
    } else this.#resize(0)
    await this.#endPublishing(LAST_DRAIN)
    for (let left = CLOSE_TIMEOUT; this.#unclosed > 0 && left > 0; left -= CLOSE_CHECK)
      await sleep(CLOSE_CHECK)
  }
}
