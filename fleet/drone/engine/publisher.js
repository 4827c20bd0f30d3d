import { channelNumber } from '../../subjects.js'
import { Lane } from './lane.js'
import { Books } from './ledger.js'
import { PayloadMaker } from './payload.js'

/** @typedef {import('../../schema.js').Publish} Publish */
/** @typedef {import('./clock.js').Clock} Clock */
/** @typedef {import('./lane.js').Carrier} Carrier */
/** @typedef {import('./lane.js').Message} Message */

/** Batches that are under way at once. */
const LANES = 4
/** Messages a second above which they are collected for 2 ms, so that there are not thousands of requests. */
const FAST = 1000

/**
 * @typedef {object} PublisherOptions
 * @property {Publish} publish
 * @property {number} from Unix ms
 * @property {number} total connections of the fleet
 * @property {number} machine
 * @property {Clock} clock
 * @property {(lane: number) => Carrier} carrier
 * @property {import('./figures.js').Figures} figures
 */

/**
 * Publishes messages that are meant to be sent at evenly spaced times. One that cannot be sent in time is sent as soon as possible,
 * with the time that was meant, so that waiting is part of what is measured; the messages of an outage are not stored, only the time
 * of the first of them.
 */
export class Publisher {
  #options
  #publish
  #maker = new PayloadMaker()
  /** @type {Lane[]} */
  #lanes = []
  /** Unix ms, when the next message is meant to be sent. */
  #due
  /** Place of the next message; -1: not drawn yet. */
  #next = -1
  #place = -1
  #random = 1
  /** @type {NodeJS.Timeout | undefined} */
  #timer
  #stopped = false

  /** @param {PublisherOptions} options */
  constructor(options) {
    const { publish, from, total, clock } = options
    const now = clock.now()
    this.#options = options
    this.#publish = publish
    this.books = new Books(publish, total, Math.max(from, now))
    this.#random = (this.books.start ^ (publish.part << 16)) | 1
    // Publishers begin one after another, so that all messages together are evenly spaced.
    this.#due = Math.max(from, now) + (1000 / publish.rate) * (publish.part / publish.parts)
    for (let lane = 0; lane < LANES; lane++)
      this.#lanes.push(new Lane(this.books, options.carrier(lane), this))
    this.pump()
  }

  /**
   * @param {Publish} publish other rate, size or order
   * @param {number} total connections of the fleet
   */
  change(publish, total) {
    const now = this.#options.clock.now()
    // There was nobody to publish to.
    if (this.books.sequences.length === 0) this.#due = Math.max(this.#due, now)
    this.books.grow(total)
    // What is behind stays due; what is to come, comes at the new rate.
    if (this.#due > now) this.#due = now + (this.#due - now) * (this.#publish.rate / publish.rate)
    this.#publish = publish
    this.pump()
  }

  /** Sends what is due, as far as there is room. */
  pump() {
    clearTimeout(this.#timer)
    if (this.#stopped || this.books.sequences.length === 0) return
    const now = this.#options.clock.now()
    const interval = 1000 / this.#publish.rate
    while (this.#due <= now) {
      if (this.#next < 0) this.#next = this.#draw()
      const lane = this.#lanes[this.#next % LANES]
      // It will call when it has room again.
      if (lane.full) break
      lane.add(this.#next, this.#due)
      this.#next = -1
      this.#due += interval
    }
    for (const lane of this.#lanes) lane.flush()
    if (this.#due > now) {
      const least = this.#publish.rate > FAST ? 2 : 1
      this.#timer = setTimeout(() => this.pump(), Math.min(60_000, Math.max(least, this.#due - now)))
    }
  }

  /** @returns {number} place in the books */
  #draw() {
    const places = this.books.sequences.length
    if (this.#publish.order === 'sequential') return (this.#place = (this.#place + 1) % places)
    // xorshift32 (Marsaglia, 2003)
    this.#random ^= this.#random << 13
    this.#random ^= this.#random >>> 17
    this.#random ^= this.#random << 5
    return (this.#random >>> 0) % places
  }

  /**
   * @param {Message} message
   * @param {number} sequence
   * @param {string} channel
   */
  payload({ time, again }, sequence, channel) {
    const { clock, machine } = this.#options
    const numbers = {
      t: Math.round(time * 1000),
      s: sequence,
      c: channelNumber(channel),
      e: this.books.start,
      m: machine,
      o: Math.round(clock.state.offset * 1000),
    }
    return this.#maker.make(numbers, this.#publish.size, again)
  }

  /** @param {Message} message that was confirmed */
  published({ time }) {
    const { figures, clock } = this.#options
    figures.counters.published++
    figures.answer.record(clock.now() - time)
  }

  /** @param {string} reason @param {number} messages that are given up */
  unpublished(reason, messages) {
    this.#options.figures.counters.unpublished += messages
    this.fault(reason, messages)
  }

  /** @param {string} reason @param {number} [times] */
  fault(reason, times) {
    this.#options.figures.fault(`publish: ${reason}`, times)
  }

  /**
   * No more messages; those that are due are given up, and what waits in lanes when its time is over.
   * @param {number} drain ms that it has
   * @returns {Promise<void>} when nothing is under way any more; to be called once
   */
  stop(drain) {
    this.#stopped = true
    clearTimeout(this.#timer)
    const { clock } = this.#options
    const began = clock.now()
    const behind = Math.max(0, Math.ceil(((began - this.#due) * this.#publish.rate) / 1000))
    // A timer is never that exact: what became due since it was set is no failure.
    if (behind > this.#publish.rate / 20 + 1) this.unpublished('given up', behind)
    return new Promise(resolve => {
      const look = () => {
        if (this.#lanes.some(lane => !lane.idle) && clock.now() - began < drain)
          return void setTimeout(look, 20)
        for (const lane of this.#lanes) lane.close()
        resolve()
      }
      look()
    })
  }
}
