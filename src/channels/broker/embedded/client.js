import { errors } from '../../../base/errors.js'
import { LocalControl } from './control.js'
import { At, Frame, FrameReader, FrameWriter } from './frames.js'
import { readPublication, writePublication } from './publication.js'
import { HistoryRead, Reads, Recovery } from './reads.js'
import { readRepublication, WorkerRepublishing } from './republishing.js'
import { SoleDelivery } from './sole.js'

/**
 * @typedef {import('../contract.js').Publication} Publication
 * @typedef {import('../contract.js').PubSub} PubSub
 * @typedef {import('../contract.js').Presence} Presence
 * @typedef {import('./records.js').FrameCursor} FrameCursor
 * @typedef {(error: Error | null, cursor: FrameCursor | null) => void} Done reads its answer from the cursor at once
 */

const errorsByCode = new Map(Object.values(errors).map(error => [error.code, error]))

/** A worker's side of the bus to the primary: sends frames, and matches answers with requests. */
export class Bus {
  /** @type {(Done | null)[]} request number -> its callback */
  #waiting = []
  /** @type {number[]} free numbers of #waiting */
  #free = []
  open = true
  /** One bit for each republisher whose queue is full. */
  republishersFull = 0

  /** @param {import('node:net').Socket} socket @param {import('../../../base/log.js').Log} log */
  constructor(socket, log) {
    this.writer = new FrameWriter(socket)
    socket.on('error', error => log.debug({ err: error }, 'bus failed'))
    socket.on('close', () => this.#closed())
  }

  #closed() {
    this.open = false
    for (const done of this.#waiting.splice(0)) done?.(errors.internal, null)
    this.#free = []
  }

  /** Whether no request is without its answer. */
  get idle() {
    return this.open && this.#free.length === this.#waiting.length
  }

  /** @param {Done} done @returns {number} number of the request that `done` answers */
  number(done) {
    if (!this.open) queueMicrotask(() => done(errors.internal, null))
    const number = this.#free.pop() ?? this.#waiting.length
    this.#waiting[number] = this.open ? done : null
    return number
  }

  /** Starts the frame of a request. @param {number} type @param {Done} done */
  request(type, done) {
    return this.writer.begin(type).u32(this.number(done))
  }

  /**
   * @template T @param {number} type @param {string[]} texts @param {(cursor: FrameCursor) => T} read
   * @returns {Promise<T>}
   */
  ask(type, texts, read) {
    return new Promise((resolve, reject) => {
      const writer = this.request(type, (error, cursor) => {
        if (error) reject(error)
        else resolve(read(/** @type {FrameCursor} */ (cursor)))
      })
      for (const text of texts) writer.string(text)
      writer.end()
    })
  }

  /** @param {number} number @param {Error | null} error @param {FrameCursor | null} cursor */
  answered(number, error, cursor) {
    const done = this.#waiting[number]
    if (!done) return
    this.#waiting[number] = null
    this.#free.push(number)
    done(error, cursor)
  }
}

/** @type {import('../contract.js').HistoryFilter} */
const POSITION = Object.freeze({ limit: 0 })

/** @implements {PubSub} */
class LocalPubSub {
  #bus
  #reads
  #sole

  /** @param {Bus} bus @param {Reads} reads @param {SoleDelivery} sole */
  constructor(bus, reads, sole) {
    this.#bus = bus
    this.#reads = reads
    this.#sole = sole
  }

  start() {}
  close() {}

  /** @type {PubSub['publish']} */
  publish(channel, data, options, done) {
    const { republish } = options
    if (republish && republish.block & this.#bus.republishersFull)
      return queueMicrotask(() => done(errors.internal, 0, ''))
    if (this.#sole.takes(options)) return this.#sole.publish(channel, data, options, done)
    const writer = this.#bus.request(Frame.PUBLISH, (error, cursor) => {
      if (error || !cursor) done(error, 0, '')
      else if (cursor.at === cursor.end) done(null, 0, '')
      else done(null, cursor.f64(), cursor.epoch())
    })
    writePublication(writer, 0, '', channel, data, options)
    writer.end()
  }

  /** @type {PubSub['subscribe']} */
  subscribe(channel, wants, done) {
    const { recover } = wants
    if (recover) return new Recovery(this.#bus, this.#reads, channel, wants, recover, done).start()
    const writer = this.#bus.request(Frame.SUBSCRIBE, (error, cursor) => {
      const answer = { offset: 0, epoch: '', recovered: false, publications: [] }
      if (error || !cursor) return done(error ?? errors.internal, answer)
      answer.offset = cursor.f64()
      answer.epoch = cursor.epoch()
      done(null, answer)
    })
    writer.string(channel).string(JSON.stringify(wants)).end()
  }

  /** @type {PubSub['unsubscribe']} */
  unsubscribe(channel) {
    this.#bus.writer.begin(Frame.UNSUBSCRIBE).string(channel).end()
  }

  /** @type {PubSub['announce']} */
  announce(channel, info, joined) {
    const writer = this.#bus.writer.begin(Frame.ANNOUNCE).u8(joined ? 1 : 0)
    writer.string(channel).string(info).end()
  }

  /** @type {PubSub['history']} */
  history(channel, filter, metaTtl) {
    return new Promise((resolve, reject) =>
      new HistoryRead(this.#bus, this.#reads, channel, filter, metaTtl, (error, answer) =>
        error ? reject(error) : resolve(answer),
      ).start(),
    )
  }

  /** @type {PubSub['position']} */
  position(channel, metaTtl, done) {
    const writer = this.#bus.request(Frame.HISTORY, (error, cursor) => {
      if (error || !cursor) done(error, 0, '')
      else done(null, cursor.f64(), cursor.epoch())
    })
    writer
      .string(channel)
      .string(JSON.stringify({ filter: POSITION, metaTtl }))
      .end()
  }

  /** @type {PubSub['removeHistory']} */
  removeHistory(channel) {
    return this.#bus.ask(Frame.REMOVE_HISTORY, [channel], () => undefined)
  }
}

/** @implements {Presence} */
class LocalPresence {
  #bus
  #reads

  /** @param {Bus} bus @param {Reads} reads */
  constructor(bus, reads) {
    this.#bus = bus
    this.#reads = reads
  }

  start() {}
  close() {}

  /** @type {Presence['update']} */
  update(channel, client, info) {
    this.#bus.writer.begin(Frame.UPDATE_PRESENCE).string(channel).string(client).string(info).end()
  }

  /** @type {Presence['remove']} */
  remove(channel, client) {
    this.#bus.writer.begin(Frame.REMOVE_PRESENCE).string(channel).string(client).end()
  }

  /** @type {Presence['list']} */
  list(channel) {
    const read = (/** @type {FrameCursor} */ cursor) => {
      const presence = new Map()
      for (let count = cursor.u32(); count > 0; count--) presence.set(cursor.string(), cursor.string())
      return presence
    }
    return new Promise((resolve, reject) =>
      // A list may be large: few at a time, as with history.
      this.#reads.enter(() =>
        this.#bus
          .ask(Frame.PRESENCE, [channel], read)
          .then(resolve, reject)
          .finally(() => this.#reads.leave()),
      ),
    )
  }

  /** @type {Presence['stats']} */
  stats(channel) {
    const read = (/** @type {FrameCursor} */ cursor) => ({ clients: cursor.u32(), users: cursor.u32() })
    return this.#bus.ask(Frame.PRESENCE_STATS, [channel], read)
  }
}

/** The node's own broker in a worker: requests to the primary and events from it. */
export class LocalBroker {
  #bus
  #events
  #log
  #onGone
  #reader
  #sole

  /**
   * @param {import('node:net').Socket} socket to the primary; its owner passes the bytes it reads to `receive`
   * @param {import('../contract.js').BrokerEvents} events @param {string} node @param {import('../../../base/log.js').Log} log
   * @param {(worker: number) => void} onGone called with the number of a worker that has ended
   */
  constructor(socket, events, node, log, onGone) {
    this.#bus = new Bus(socket, log)
    this.#events = events
    this.#log = log
    this.#onGone = onGone
    const reads = new Reads()
    this.#sole = new SoleDelivery(this.#bus, events, log)
    this.pubsub = new LocalPubSub(this.#bus, reads, this.#sole)
    this.presence = new LocalPresence(this.#bus, reads)
    this.control = new LocalControl(this.#bus, events, node, log)
    this.republishing = new WorkerRepublishing(this.#bus)
    this.#reader = new FrameReader(
      (type, cursor) => this.#handle(type, cursor),
      error => log.error({ err: error }, 'frame from the primary failed'),
    )
  }

  /** @param {Buffer} chunk valid during the call */
  receive(chunk) {
    this.#reader.push(chunk)
  }

  ready() {
    return this.#bus.open
  }

  /** @param {number} type @param {FrameCursor} cursor */
  #handle(type, cursor) {
    switch (type) {
      case Frame.PUBLICATION: {
        const flags = (cursor.at = cursor.start + At.FLAGS) && cursor.u8()
        const offset = cursor.f64()
        const epoch = cursor.epoch()
        const channel = cursor.string()
        return this.#events.publication(channel, readPublication(cursor, flags, offset, epoch, false))
      }
      case Frame.PUBLISHED:
      case Frame.ANSWER:
        return this.#bus.answered(cursor.u32(), null, cursor)
      case Frame.FAILED:
        return this.#bus.answered(cursor.u32(), errorsByCode.get(cursor.u32()) ?? errors.internal, null)
      case Frame.EVENT: {
        const joined = cursor.u8() === 1
        return this.#events.presence(cursor.string(), cursor.string(), joined)
      }
      case Frame.SURVEY_QUESTION:
        return this.control.asked(cursor)
      case Frame.CALLED:
        return this.control.called(cursor)
      case Frame.REPUBLISH:
        return this.#events.republish?.(readRepublication(cursor))
      case Frame.REPUBLISH_FULL:
        this.#bus.republishersFull = cursor.u32()
        return
      case Frame.SOLE:
        return this.#sole.set(cursor.u8() === 1)
      case Frame.GONE:
        return this.#onGone(this.control.gone(cursor))
      default:
        this.#log.error({ type }, 'unknown frame from the primary')
    }
  }
}
