import { zeroCounters } from '../../statistics/counters.js'
import { Recorder } from '../../statistics/recorder.js'
import { parseSubject } from '../../subjects.js'
import { Dialer } from '../transport/dialer.js'
import { ApiCarrier, ClientCarrier } from './carriers.js'
import { Clock } from './clock.js'
import { readLedger } from './ledger.js'
import { PayloadReader, readOffset } from './payload.js'
import { Pool } from './pool.js'
import { Publisher } from './publisher.js'
import { Subscriptions, startNumber } from './subscriptions.js'
import { makeToken } from './token.js'

/** @typedef {import('../../schema.js').Settings} Settings */
/** @typedef {import('../../schema.js').Ledger} Ledger */
/** @typedef {import('../transport/dialer.js').Connection} Connection */

/** ms */
const TICK = 10
const CLOSE_TIMEOUT = 5000
/** ms for what a publisher has under way when other settings come, and when all ends. */
const DRAIN = 5000
const LAST_DRAIN = 1000
const KINDS = 30
/** Publishers' starts whose books are kept. */
const BOOKS = 8

const H = 0x68
const S = 0x73

/** The settings with which other connections would be made: when one changes, all are opened anew. */
const LASTING = /** @type {const} */ ([
  'targets',
  'transport',
  'first',
  'channels',
  'recover',
  'user',
  'addresses',
  'ports',
])

/** @param {{code: number, message?: string, reason?: string}} fault */
const label = ({ code, message, reason }) => `${code || ''} ${message ?? reason ?? ''}`.trim()

/** Holds connections, checks what they receive, and publishes: as its settings say, whatever was before. */
export class Engine {
  #options
  /** @type {Settings | null} */
  #settings = null
  #lasting = ''
  /** @type {Dialer | null} */
  #dialer = null
  #bytesIn = 0
  #bytesOut = 0
  #twoWay = true
  #clock = new Clock()
  #reader = new PayloadReader()
  #counters = zeroCounters()
  #subscriptions = new Subscriptions([], false, this.#counters)
  /** Answers that a slot waits for. */
  #answers = new Uint8Array(0)
  #pool
  /** Dialled, and not closed yet. */
  #alive = 0
  #latency = new Recorder()
  #probe = new Recorder()
  #connect = new Recorder()
  #answer = new Recorder()
  /** @type {Record<string, number>} */
  #faults = {}
  /** @type {Publisher | null} */
  #publisher = null
  #publishing = ''
  /** @type {import('./ledger.js').Books[]} of publishers that were */
  #books = []
  /** @type {Set<Promise<void>>} publishers that end */
  #ending = new Set()
  /** @type {(() => void) | null} waits until nothing is alive */
  #gone = null
  #timer

  /** @param {{allow: string[], apiKey?: string, tokenSecret?: string, machine: number}} options `machine`: its number, the `m` of payloads */
  constructor(options) {
    this.#options = options
    this.#pool = new Pool({
      dial: slot => this.#dial(slot),
      fail: (slot, reason) => this.#fail(slot, reason),
      shut: slot => this.#shut(slot, 'again'),
    })
    this.#timer = setInterval(() => this.#pool.tick(this.#clock.now()), TICK)
  }

  /**
   * @param {Settings} settings
   * @throws {Error} with one line, when they cannot be read; then those before hold on
   */
  apply(settings) {
    const lasting = JSON.stringify(LASTING.map(name => settings[name]))
    const subjects = settings.channels.map(parseSubject)
    if (settings.user) parseSubject(settings.user)
    if (settings.user && !this.#options.tokenSecret) throw new Error('a user needs a token secret')
    if (settings.publish) {
      parseSubject(settings.publish.channels)
      if (settings.publish.via === 'api' && !this.#options.apiKey)
        throw new Error('publishing needs an API key')
    }
    if (subjects.length > 128) throw new Error('more than 128 channels a connection')
    if (lasting !== this.#lasting) this.#reopen(settings, subjects)
    this.#lasting = lasting
    this.#settings = settings
    const { concurrency, rate, churn, backoff, connections } = settings
    Object.assign(this.#pool, { concurrency, rate, churn, backoff })
    this.#resize(connections)
    this.#subscriptions.publishing(settings.publishFrom, this.#clock.now())
    this.#publishAs(settings)
  }

  /**
   * @param {Settings} settings
   * @param {import('../../subjects.js').Subject[]} subjects
   */
  #reopen(settings, subjects) {
    const dialer = this.#makeDialer(settings, settings.transport, {
      message: (connection, buffer, start, end) => this.#message(connection, buffer, start, end),
      closed: (connection, code, reason) => this.#closed(connection, label({ code, reason })),
    })
    this.#resize(0)
    this.#bytesIn += this.#dialer?.bytesIn ?? 0
    this.#bytesOut += this.#dialer?.bytesOut ?? 0
    this.#dialer = dialer
    this.#twoWay = !settings.transport.startsWith('uni_')
    this.#subscriptions = new Subscriptions(subjects, settings.recover, this.#counters)
    this.#subscriptions.grow(this.#pool.room)
  }

  /**
   * @param {Settings} settings
   * @param {import('../../schema.js').Transport} transport
   * @param {import('../transport/dialer.js').Listener} listener
   */
  #makeDialer({ targets, addresses, ports }, transport, listener) {
    return new Dialer({ targets, allow: this.#options.allow, transport, addresses, ports }, listener)
  }

  /** @param {number} wanted */
  #resize(wanted) {
    const pool = this.#pool
    for (let slot = pool.wanted - 1; slot >= wanted; slot--) {
      this.#shut(slot, 'none')
      this.#subscriptions.forget(slot)
    }
    if (wanted > pool.room) {
      const room = Math.max(wanted, 2 * pool.room)
      pool.grow(room)
      this.#subscriptions.grow(room)
      const answers = new Uint8Array(room)
      answers.set(this.#answers)
      this.#answers = answers
    }
    pool.resize(wanted)
  }

  /** @param {number} number of a connection */
  #token(number) {
    const { user } = /** @type {Settings} */ (this.#settings)
    return user ? { token: makeToken(parseSubject(user).at(number), this.#options.tokenSecret ?? '') } : {}
  }

  /** @param {number} slot */
  #dial(slot) {
    const number = /** @type {Settings} */ (this.#settings).first + slot
    const subs = this.#twoWay ? {} : { subs: this.#subscriptions.wishes(slot, number) }
    this.#answers[slot] = this.#subscriptions.width
    this.#alive++
    return /** @type {Dialer} */ (this.#dialer).dial(slot, number, { ...this.#token(number), ...subs })
  }

  /** @param {Connection} connection @param {string} reason */
  #closed(connection, reason) {
    if (this.#pool.at(connection.slot) === connection) this.#fail(connection.slot, reason)
    if (--this.#alive === 0) this.#gone?.()
  }

  /**
   * A connection ended, or has to be ended, though nobody asked for that.
   * @param {number} slot
   * @param {string} reason
   */
  #fail(slot, reason) {
    this.#counters[this.#pool.isOpen(slot) ? 'ended' : 'failed']++
    this.#fault(reason || 'closed')
    this.#subscriptions.away(slot)
    this.#pool.leave(slot, 'lost', this.#clock.now())?.close()
  }

  /**
   * A connection is ended because that is asked for.
   * @param {number} slot
   * @param {'lost' | 'again' | 'none'} then
   * @param {'close' | 'reset'} [how]
   */
  #shut(slot, then, how = 'close') {
    if (this.#pool.isOpen(slot)) this.#counters.closed++
    this.#subscriptions.away(slot)
    this.#pool.leave(slot, then, this.#clock.now())?.[how]()
  }

  /** @param {string} kind @param {number} [times] */
  #fault(kind, times = 1) {
    const faults = this.#faults
    const name = kind in faults || Object.keys(faults).length < KINDS - 1 ? kind : 'other'
    faults[name] = (faults[name] ?? 0) + times
  }

  /**
   * @param {Connection} connection
   * @param {Buffer} buffer
   * @param {number} start
   * @param {number} end
   */
  #message(connection, buffer, start, end) {
    const { slot } = connection
    if (this.#pool.at(slot) !== connection) return
    if (end - start < 4) {
      this.#counters.pings++
      if (this.#pool.pinged(slot, this.#clock.now())) connection.send('{}')
      return
    }
    // A push is {"push":{"channel":... or, one-way, {"channel":... Replies may have publications in them, which are not read like this.
    if (buffer[start + 4] === S || buffer[start + 3] === H) {
      const found = this.#reader.read(buffer, start, end)
      if (found > 0) return this.#publication(slot, buffer, end)
    }
    let message
    try {
      message = JSON.parse(buffer.toString('utf8', start, end))
    } catch {
      this.#counters.received++
      this.#counters.damaged++
      return
    }
    this.#other(connection, message.push ?? message)
  }

  /** What the reader has found. @param {number} slot @param {Buffer} buffer @param {number} end of the message */
  #publication(slot, buffer, end) {
    const reader = this.#reader
    const subscriptions = this.#subscriptions
    const now = this.#clock.now()
    if (reader.machine === this.#options.machine) this.#probe.record(now - reader.time / 1000)
    else {
      const { offset } = this.#clock.state
      this.#latency.record(now + offset - (reader.time + reader.behind) / 1000)
    }
    const i = subscriptions.find(slot, reader.channel)
    if (i < 0) {
      this.#counters.received++
      return this.#fault('publication of another channel')
    }
    subscriptions.receive(i, reader.start, reader.sequence, reader.again)
    if (this.#settings?.recover) subscriptions.moved(i, readOffset(buffer, reader.end, end))
  }

  /**
   * Anything but an ordinary publication.
   * @param {Connection} connection
   * @param {any} message reply or push
   */
  #other(connection, message) {
    const { slot } = connection
    if (message.connect) this.#connected(connection, message.connect)
    else if (message.id === 1) this.#fail(slot, `connect: ${label(message.error ?? { code: 0 })}`)
    else if (message.id > 1) this.#answered(slot, message.id - 2, message)
    else if (message.disconnect) this.#fail(slot, label(message.disconnect))
    else if (message.unsubscribe) {
      this.#counters.refused++
      this.#fail(slot, `unsubscribed: ${label(message.unsubscribe)}`)
    } else if (message.pub) {
      this.#counters.received++
      this.#counters.damaged++
    }
  }

  /** @param {Connection} connection @param {any} connect reply or push */
  #connected(connection, { time, ping, pong, subs }) {
    const { slot, number } = connection
    const now = this.#clock.now()
    if (time) this.#clock.learn(time, this.#pool.since(slot), now)
    this.#pool.pings(slot, ping ?? 0, pong === true, now)
    const { width } = this.#subscriptions
    if (width === 0) return this.#ready(slot)
    if (this.#twoWay) return connection.send(this.#subscriptions.commands(slot, number))
    for (let place = 0; place < width; place++) {
      const result = subs?.[this.#subscriptions.name(place, number)]
      const error = { code: 0, message: 'not among the subscriptions' }
      this.#answered(slot, place, result ? { subscribe: result } : { error })
    }
  }

  /**
   * @param {number} slot
   * @param {number} place of the subscription
   * @param {any} reply
   */
  #answered(slot, place, { subscribe, error }) {
    if (this.#answers[slot] === 0 || place >= this.#subscriptions.width) return
    if (error) {
      this.#counters.refused++
      // Tried again by way of the back-off.
      if (error.temporary) return this.#fail(slot, `subscribe: ${label(error)}`)
      this.#fault(`subscribe: ${label(error)}`)
    } else {
      const i = slot * this.#subscriptions.width + place
      this.#subscriptions.answered(i, subscribe, this.#clock.now(), this.#settings?.publishFrom ?? 0)
      for (const publication of subscribe.publications ?? []) this.#recovered(slot, i, publication)
    }
    if (--this.#answers[slot] === 0) this.#ready(slot)
  }

  /** @param {number} slot @param {number} i @param {any} publication */
  #recovered(slot, i, publication) {
    const bytes = Buffer.from(`"data":${JSON.stringify(publication.data)}`)
    if (this.#reader.read(bytes, 0, bytes.length) > 0) this.#publication(slot, bytes, bytes.length)
    else {
      this.#counters.received++
      this.#counters.damaged++
    }
    if (this.#settings?.recover) this.#subscriptions.moved(i, publication.offset ?? 0)
  }

  /** @param {number} slot */
  #ready(slot) {
    const now = this.#clock.now()
    this.#connect.record(now - this.#pool.since(slot))
    this.#counters.opened++
    if (this.#pool.opened(slot, now)) this.#counters.reconnects++
  }

  /** @param {Settings} settings */
  #publishAs(settings) {
    const { publish, publishFrom: from, targets, addresses, ports, user, total } = settings
    const wanted = publish !== null && publish.rate > 0 && from > 0
    const { rate, order, size, ...lasting } = publish ?? /** @type {any} */ ({})
    const publishing = wanted ? JSON.stringify([lasting, from, targets, addresses, ports, user]) : ''
    if (publishing === this.#publishing) {
      if (wanted) this.#publisher?.change(publish)
      return
    }
    if (this.#publisher) {
      const ended = this.#publisher.stop(DRAIN)
      this.#ending.add(ended)
      ended.then(() => this.#ending.delete(ended))
    }
    this.#publisher = null
    this.#publishing = publishing
    if (from > 0) this.#books = this.#books.filter(({ start }) => start >= startNumber(from))
    if (!wanted) return
    this.#publisher = new Publisher({
      publish,
      from,
      total,
      machine: this.#options.machine,
      clock: this.#clock,
      carrier: this.#carriers(settings, publish),
      counters: this.#counters,
      answer: this.#answer,
      fault: (kind, times) => this.#fault(kind, times),
    })
    this.#books = [...this.#books.slice(1 - BOOKS), this.#publisher.books]
  }

  /**
   * @param {Settings} settings
   * @param {import('../../schema.js').Publish} publish
   * @returns {(lane: number) => import('./lane.js').Carrier}
   */
  #carriers(settings, publish) {
    if (publish.via === 'api')
      return lane => new ApiCarrier(settings.targets, publish.part + lane, this.#options.apiKey ?? '')
    /** @type {ClientCarrier[]} */
    const carriers = []
    const dialer = this.#makeDialer(settings, 'websocket', {
      message: ({ slot }, buffer, start, end) =>
        carriers[slot].message(JSON.parse(buffer.toString('utf8', start, end))),
      closed: (connection, code, reason) =>
        carriers[connection.slot].closed(connection, label({ code, reason })),
    })
    return lane => {
      const number = publish.part + lane
      carriers[lane] = new ClientCarrier(() => dialer.dial(lane, number, this.#token(number)))
      return carriers[lane]
    }
  }

  /**
   * @param {number} share 0 to 1 of the open connections
   * @param {'close' | 'reset'} how
   * @returns {number} how many were ended; they come back as lost ones do
   */
  cut(share, how) {
    const slots = this.#pool.draw(share)
    for (const slot of slots) this.#shut(slot, 'lost', how)
    return slots.length
  }

  /** @returns {import('../../schema.js').EngineSample} distributions and faults are those since the last call */
  sample() {
    const { wanted, opening, open } = this.#pool
    const counters = { ...this.#counters }
    counters.bytesIn = this.#bytesIn + (this.#dialer?.bytesIn ?? 0)
    counters.bytesOut = this.#bytesOut + (this.#dialer?.bytesOut ?? 0)
    const probe = this.#probe.toWire()
    // Kept apart until here: a message is recorded once.
    this.#latency.merge(probe)
    const sample = {
      gauges: { wanted, opening, open },
      counters,
      latency: this.#latency.toWire(),
      probe,
      connect: this.#connect.toWire(),
      answer: this.#answer.toWire(),
      faults: this.#faults,
      clock: this.#clock.state,
    }
    for (const recorder of [this.#latency, this.#probe, this.#connect, this.#answer]) recorder.reset()
    this.#faults = {}
    return sample
  }

  /** @returns {Ledger[]} of all publishers here since publishing began */
  ledgers() {
    return this.#books.map(books => books.toLedger())
  }

  /**
   * @param {Ledger[]} ledgers
   * @returns {import('../../schema.js').Reckoning}
   * @throws {Error} when one cannot be read
   */
  reckon(ledgers) {
    const sum = { expected: 0, lost: 0, unknown: 0 }
    const { width } = this.#subscriptions
    for (const ledger of ledgers) {
      const last = readLedger(ledger)
      for (let i = 0; i < this.#pool.wanted * width; i++) {
        const number = (this.#settings?.first ?? 0) + Math.floor(i / width)
        const sequence = last(this.#subscriptions.name(i % width, number))
        const { expected, lost, unknown } = this.#subscriptions.reckon(i, ledger.start, sequence)
        sum.expected += expected
        sum.lost += lost
        sum.unknown += unknown
      }
    }
    return sum
  }

  /** Ends publishing, closes all connections, and resolves when they are closed. */
  async stop() {
    clearInterval(this.#timer)
    const ended = this.#publisher?.stop(LAST_DRAIN)
    this.#publisher = null
    this.#publishing = ''
    this.#resize(0)
    await Promise.all([ended, ...this.#ending])
    if (this.#alive === 0) return
    await new Promise(resolve => {
      const timer = setTimeout(resolve, CLOSE_TIMEOUT)
      this.#gone = () => {
        clearTimeout(timer)
        resolve(undefined)
      }
    })
  }
}
