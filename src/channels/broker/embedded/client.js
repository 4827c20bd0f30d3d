import { errors } from '../../../base/errors.js'
import { NOT_SUBSCRIBED } from '../contract.js'
import { Denylist } from '../denylist.js'
import { LocalControl } from './control.js'
import { LocalDenials } from './denials.js'
import { DirectDelivery } from './direct-delivery.js'
import { At, Frame, FrameReader, FrameWriter, readPublication, writePublication } from './frames.js'
import { LocalMaps } from './maps-client.js'
import { LocalPolls } from './polls-client.js'
import { HistoryRead, Reads, Recovery } from './reads.js'
import { readRepublication, WorkerRepublishing } from './republishing.js'
import { LocalStatuses } from './statuses-client.js'

/** @import { Socket } from 'node:net' */
/** @import { Log } from '../../../base/log.js' */
/** @import { BrokerEvents, HistoryFilter, Presence, PubSub } from '../contract.js' */
/** @import { FrameCursor } from './records.js' */

/** @typedef {(error: Error | null, cursor: FrameCursor | null) => void} Done reads the cursor synchronously */

const errorsByCode = new Map(Object.values(errors).map(error => [error.code, error]))

/** A worker's end of the bus to the primary: sends frames, and matches responses to requests. */
export class Bus {
  /** @type {(Done | null)[]} request number -> its callback */
  #waiting = []
  /** @type {number[]} free numbers of #waiting */
  #free = []
  open = true
  /** One bit per republisher with a full queue. */
  republishersFull = 0

  /** @param {Socket} socket @param {Log} log */
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

  get idle() {
    return this.open && this.#free.length === this.#waiting.length
  }

  /** @param {Done} done @returns {number} number of the request of `done` */
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

/** @type {HistoryFilter} */
const POSITION = Object.freeze({ limit: 0 })

/** @implements {PubSub} */
class LocalPubSub {
  #bus
  #reads
  #direct

  /** @param {Bus} bus @param {Reads} reads @param {DirectDelivery} direct */
  constructor(bus, reads, direct) {
    this.#bus = bus
    this.#reads = reads
    this.#direct = direct
  }

  start() {}
  close() {}

  /** @type {PubSub['publish']} */
  publish(channel, data, options, done) {
    const { republish } = options
    if (republish && republish.block & this.#bus.republishersFull)
      return queueMicrotask(() => done(errors.internal, 0, ''))
    if (this.#direct.takes(options)) return this.#direct.publish(channel, data, options, done)
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
      if (error || !cursor) return done(error ?? errors.internal, NOT_SUBSCRIBED)
      done(null, { offset: cursor.f64(), epoch: cursor.epoch(), recovered: false, publications: [] })
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
    const request = JSON.stringify({ filter: POSITION, metaTtl })
    writer.string(channel).string(request).end()
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
    const ask = () => this.#bus.ask(Frame.PRESENCE, [channel], read).finally(() => this.#reads.leave())
    // Lists may be large: few at a time, as with history.
    return new Promise((resolve, reject) => this.#reads.enter(() => ask().then(resolve, reject)))
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
  #reader
  /** Frames other than publications. @type {Record<number, (cursor: FrameCursor) => void>} */
  #frames

  /**
   * @param {Socket} socket to the primary; its owner passes received bytes to `receive`
   * @param {BrokerEvents} events @param {string} node @param {Log} log
   * @param {(worker: number) => void} onGone called with the number of an exited worker
   * @param {Denylist} [denylist] to fill
   */
  constructor(socket, events, node, log, onGone, denylist = new Denylist()) {
    const bus = new Bus(socket, log)
    const reads = new Reads()
    const direct = new DirectDelivery(bus, events, log)
    this.#bus = bus
    this.#events = events
    this.#log = log
    this.pubsub = new LocalPubSub(bus, reads, direct)
    this.presence = new LocalPresence(bus, reads)
    this.maps = new LocalMaps(bus, reads)
    this.polls = new LocalPolls(bus, events)
    this.denials = new LocalDenials(bus, events, denylist)
    this.control = new LocalControl(bus, events, node, log)
    this.republishing = new WorkerRepublishing(bus)
    this.#reader = new FrameReader(
      (type, cursor) => this.#handle(type, cursor),
      error => log.error({ err: error }, 'handling a frame from the primary failed'),
    )
    this.#frames = {
      [Frame.FAILED]: cursor =>
        bus.answered(cursor.u32(), errorsByCode.get(cursor.u32()) ?? errors.internal, null),
      [Frame.EVENT]: cursor => {
        const joined = cursor.u8() === 1
        events.presence(cursor.string(), cursor.string(), joined)
      },
      [Frame.CLEARED]: cursor => events.interrupted?.(cursor.string()),
      [Frame.SURVEY_QUESTION]: cursor => this.control.question(cursor),
      [Frame.CALLED]: cursor => this.control.called(cursor),
      [Frame.REPUBLISH]: cursor => events.republish?.(readRepublication(cursor)),
      [Frame.REPUBLISH_FULL]: cursor => {
        bus.republishersFull = cursor.u32()
      },
      [Frame.POLL_REFRESH]: cursor => this.polls.refresh(cursor),
      [Frame.POLL_UPDATE]: cursor => this.polls.update(cursor),
      [Frame.POLL_EPOCH]: cursor => this.polls.epoch(cursor),
      [Frame.DENIED]: cursor => this.denials.receive(cursor),
      [Frame.STATES]: cursor => {
        const [number, dropped] = [cursor.u32(), cursor.u32()]
        events.states?.(JSON.parse(cursor.string()), dropped, accepted => this.#done(number, accepted))
      },
      [Frame.OCCUPANCY]: cursor => {
        const number = cursor.u32()
        events.occupancy?.(cursor.string(), cursor.u32(), published => this.#done(number, published))
      },
      [Frame.ONLY]: cursor => direct.set(cursor.u8() === 1),
      [Frame.GONE]: cursor => onGone(this.control.gone(cursor)),
    }
  }

  /** @param {number} ttl ms after the last update */
  statuses(ttl) {
    return new LocalStatuses(this.#bus, ttl)
  }

  /** @param {Buffer} chunk valid during the call */
  receive(chunk) {
    this.#reader.push(chunk)
  }

  /** @param {number} number of a call @param {boolean} accepted */
  #done(number, accepted) {
    this.#bus.writer
      .begin(Frame.STATES_DONE)
      .u32(number)
      .u8(accepted ? 1 : 0)
      .end()
  }

  ready() {
    return this.#bus.open
  }

  /** @param {number} type @param {FrameCursor} cursor */
  #handle(type, cursor) {
    if (type === Frame.PUBLICATION) {
      const flags = (cursor.at = cursor.start + At.FLAGS) && cursor.u16()
      const offset = cursor.f64()
      const epoch = cursor.epoch()
      const channel = cursor.string()
      this.#events.publication(channel, readPublication(cursor, flags, offset, epoch, false))
    } else if (type === Frame.PUBLISHED || type === Frame.ANSWER) {
      this.#bus.answered(cursor.u32(), null, cursor)
    } else if (this.#frames[type] === undefined) {
      this.#log.error({ type }, 'unknown frame from the primary')
    } else this.#frames[type](cursor)
  }
}
