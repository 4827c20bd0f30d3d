// Republishing: the queue process of a node sends accepted publications to queues of other systems. Workers apply the
// rules for channels (clients/auth/republish-rules.js) and set the bits of the republishers.

import { enabledRepublishers } from '../../config/republish.js'
import { compileTemplate, formats, headersOf } from './body.js'
import { within as withinTime } from './timing.js'
import { loadType } from './types.js'

/** @import { Config, RepublishOptions } from '../../config/options.js' */
/** @import { Republication, Republishing } from '../../channels/broker/contract.js' */
/** @import { Log } from '../../base/log.js' */
/** @import { Delivery, Destination, DestinationContext, OutgoingMessage } from './contract.js' */

/** @typedef {(context: DestinationContext<any>) => Destination} Create */

/**
 * `confirm` notifies a waiting publisher; `batchMs`: minimum interval of batches.
 * @typedef {{create: Create, origin: string, boundary: string, log: Log, batchMs?: number,
 *   confirm: (number: number, confirmed: boolean) => void}} RepublisherParts
 */

const MESSAGE_BYTES = 300
/** Minimum interval of batches, ms: under load many messages share a write. */
const BATCH_MS = 1
/** With `block`, a full queue still accepts publications in progress, up to this many times its limits. */
const BLOCK_ROOM = 2

/** Templates of each type: target, key. @type {Readonly<Record<string, [string, string]>>} */
const TEMPLATES = {
  rabbitmq: ['exchange', 'routing_key'],
  redis_stream: ['stream', ''],
  nats_jetstream: ['subject', ''],
  kafka: ['topic', ''],
}

/** @typedef {Record<'sent' | 'confirmed' | 'returned' | 'refused' | 'dropped', number>} Figures sent: including resends */

/**
 * The queue of one destination.
 *
 *   add -> #waiting (oldest first) -> send -> #inFlight -> settled
 *              ^------------- down -------------'
 */
export class Republisher {
  figures = { sent: 0, confirmed: 0, returned: 0, refused: 0, dropped: 0 }
  bytes = 0
  up = false
  /** Oldest first, from #first. @type {(OutgoingMessage | null)[]} */
  #waiting = []
  #first = 0
  /** In sending order. @type {Set<OutgoingMessage>} */
  #inFlight = new Set()
  #options
  #parts
  #maxInFlight
  #format
  #target
  #key
  #scheduled = false
  /** Of the last batch, ms. */
  #sentAt = -Infinity
  #ending = false
  #onEmpty = () => {}
  /** @type {Destination} */
  #destination

  /** @param {RepublishOptions} options @param {RepublisherParts} parts */
  constructor(options, parts) {
    this.#options = options
    this.#parts = parts
    const { name, type } = options
    const block = /** @type {any} */ (options)[type]
    this.#maxInFlight = block.max_in_flight
    this.#format = formats[options.format]
    const [target, key] = TEMPLATES[type]
    this.#target = compileTemplate(block[target], parts.boundary)
    this.#key = compileTemplate(key === '' ? '' : block[key], parts.boundary)
    this.#destination = parts.create({
      options: block,
      name,
      log: parts.log,
      up: () => this.#onUp(),
      down: error => this.#onDown(error),
      settled: (message, outcome, reason) => this.#settled(message, outcome, reason),
    })
  }

  get name() {
    return this.#options.name
  }

  get required() {
    return this.#options.required
  }

  get size() {
    return this.#waiting.length - this.#first + this.#inFlight.size
  }

  get full() {
    const { overflow, queue_max_size: size, queue_max_bytes: bytes } = this.#options
    return overflow === 'block' && (this.size >= size || this.bytes >= bytes)
  }

  /** @param {number} now unix ms @returns {number} age of the oldest message, ms */
  age(now) {
    const oldest = this.#inFlight.values().next().value ?? this.#waiting[this.#first]
    return oldest ? Math.max(0, now - oldest.time) : 0
  }

  start() {
    this.#destination.start()
  }

  /** @param {Republication} republication @param {string} id */
  add(republication, id) {
    const { channel, publication, time } = republication
    const { include_meta: withMeta, format, required } = this.#options
    const body = this.#format(republication, id, withMeta)
    /** @type {OutgoingMessage} */
    const message = {
      id,
      channel,
      body,
      json: format !== 'data' || publication.json,
      headers: headersOf(republication, this.#parts.origin),
      target: this.#target(channel),
      key: this.#key(channel),
      time,
      bytes: body.length + channel.length + MESSAGE_BYTES,
      number: required ? republication.number : 0,
    }
    if (!this.#makeRoom(message)) return this.#drop(message)
    this.#waiting.push(message)
    this.bytes += message.bytes
    this.#schedule()
  }

  /** @param {OutgoingMessage} message @returns {boolean} false: drop it */
  #makeRoom(message) {
    const { overflow, queue_max_size: maxSize, queue_max_bytes: maxBytes } = this.#options
    const room = overflow === 'block' ? BLOCK_ROOM : 1
    const fits = () => this.size < maxSize * room && this.bytes + message.bytes <= maxBytes * room
    if (overflow !== 'drop_oldest' || message.bytes > maxBytes) return fits()
    while (!fits()) {
      const oldest = this.#shift() ?? this.#inFlight.values().next().value
      if (oldest === undefined) return false
      this.#inFlight.delete(oldest)
      this.bytes -= oldest.bytes
      this.#drop(oldest)
    }
    return true
  }

  /** @param {OutgoingMessage} message */
  #drop(message) {
    this.figures.dropped++
    if (message.number !== 0) this.#parts.confirm(message.number, false)
    this.#parts.log.warn({ republisher: this.name }, 'republisher queue is full: dropping messages')
  }

  #shift() {
    const waiting = this.#waiting
    if (this.#first === waiting.length) return undefined
    const message = /** @type {OutgoingMessage} */ (waiting[this.#first])
    waiting[this.#first++] = null
    if (this.#first === waiting.length || this.#first > 65_536) {
      waiting.splice(0, this.#first)
      this.#first = 0
    }
    return message
  }

  /** @param {number} [batchMs] */
  #schedule(batchMs = this.#parts.batchMs ?? BATCH_MS) {
    if (this.#scheduled || !this.up) return
    this.#scheduled = true
    if (performance.now() - this.#sentAt >= batchMs) queueMicrotask(this.#send)
    else setTimeout(this.#send, batchMs)
  }

  #send = () => {
    this.#scheduled = false
    this.#sentAt = performance.now()
    let some = false
    while (this.up && this.#inFlight.size < this.#maxInFlight) {
      const message = this.#shift()
      if (message === undefined) break
      this.#inFlight.add(message)
      this.figures.sent++
      some = true
      try {
        this.#destination.send(message)
      } catch (error) {
        this.#settled(message, 'refused', error.message)
      }
    }
    if (some && this.up) this.#destination.flush?.()
  }

  #onUp() {
    if (this.up) return
    this.up = true
    this.#parts.log.info({ republisher: this.name }, 'republisher connected')
    this.#schedule()
  }

  /** @param {Error} error */
  #onDown(error) {
    const reason = error.message || String(error)
    this.#parts.log.warn({ republisher: this.name, reason }, 'republisher not connected')
    this.up = false
    if (this.#inFlight.size === 0) return
    this.#waiting = [...this.#inFlight, ...this.#waiting.slice(this.#first)]
    this.#first = 0
    this.#inFlight.clear()
  }

  /** @param {OutgoingMessage} message @param {Delivery} outcome @param {string} [reason] */
  #settled(message, outcome, reason) {
    if (!this.#inFlight.delete(message)) return
    this.bytes -= message.bytes
    this.figures[outcome]++
    if (message.number !== 0) this.#parts.confirm(message.number, outcome === 'confirmed')
    if (outcome !== 'confirmed')
      this.#parts.log.warn(
        { republisher: this.name, outcome, target: message.target, reason },
        'message not accepted by the queue',
      )
    if (this.size === 0 && this.#ending) this.#onEmpty()
    // No batch is scheduled for messages beyond max_in_flight.
    if (this.#first < this.#waiting.length) this.#schedule(0)
  }

  /** Flushes the queue. @param {number} within ms @returns {Promise<number>} lost messages */
  async stop(within) {
    this.#ending = true
    if (this.size > 0 && within > 0) {
      /** @type {Promise<void>} */
      const empty = new Promise(resolve => (this.#onEmpty = resolve))
      await withinTime(empty, within)
    }
    const lost = this.size
    if (lost > 0)
      this.#parts.log.error({ republisher: this.name, lost }, 'messages not republished before exit')
    this.up = false
    await this.#destination.stop()
    return lost
  }
}

/** @param {Config} config @returns {Promise<Create[]>} of each enabled republisher @throws {Error} without a package */
export const loadRepublishers = config =>
  Promise.all(
    enabledRepublishers(config).map(
      async ({ name, type }) => (await loadType('republisher', name, type)).create,
    ),
  )

/** A required publication with unconfirmed republishers. @typedef {{open: number, confirmed: boolean}} Waiting */

export class Republishers {
  #republishers
  #republishing
  #ids
  #last = 0
  #full = 0
  /** @type {Map<number, Waiting>} number on the bus -> pending confirms */
  #waiting = new Map()

  /**
   * @param {Config} config @param {Create[]} creates from `loadRepublishers`
   * @param {object} parts @param {string} parts.origin @param {string} parts.ids prefix of message ids
   * @param {Republishing} parts.republishing @param {Log} parts.log
   */
  constructor(config, creates, { origin, ids, republishing, log }) {
    this.#republishing = republishing
    this.#ids = ids
    const boundary = config.channel.namespace_boundary
    const confirm = (/** @type {number} */ number, /** @type {boolean} */ ok) => this.#confirmed(number, ok)
    this.#republishers = enabledRepublishers(config).map(
      (options, i) => new Republisher(options, { create: creates[i], origin, boundary, log, confirm }),
    )
  }

  start() {
    for (const republisher of this.#republishers) republisher.start()
  }

  /** @param {Republication} republication valid during the call */
  take(republication) {
    const id = this.#ids + (++this.#last).toString(36)
    const chosen = this.#republishers.filter((_, i) => (republication.to & (1 << i)) !== 0)
    if (republication.number !== 0) {
      const open = chosen.filter(({ required }) => required).length
      if (open === 0) this.#republishing.confirm(republication.number, true)
      else this.#waiting.set(republication.number, { open, confirmed: true })
    }
    for (const republisher of chosen) republisher.add(republication, id)
    this.checkFull()
  }

  /** @param {number} number @param {boolean} ok */
  #confirmed(number, ok) {
    const waiting = this.#waiting.get(number)
    if (waiting === undefined) return
    waiting.confirmed &&= ok
    if (--waiting.open > 0) return
    this.#waiting.delete(number)
    this.#republishing.confirm(number, waiting.confirmed)
  }

  /** Reports full queues to the workers. Called after each publication and periodically. */
  checkFull() {
    let full = 0
    for (const [i, republisher] of this.#republishers.entries()) if (republisher.full) full |= 1 << i
    if (full === this.#full) return
    this.#full = full
    this.#republishing.report(full)
  }

  /** @param {number} now unix ms */
  figures(now) {
    return this.#republishers.map(one => ({
      name: one.name,
      ...one.figures,
      queued: one.size,
      queued_bytes: one.bytes,
      age: one.age(now),
      up: one.up,
    }))
  }

  /** @param {number} within ms */
  async stop(within) {
    await Promise.all(this.#republishers.map(republisher => republisher.stop(within)))
  }
}
