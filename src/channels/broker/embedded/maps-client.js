import { errors } from '../../../base/errors.js'
import { MapCounter } from '../../../metrics/map-counter.js'
import { Frame, readPublications } from './frames.js'
import { readMapResult, writeMapWrite } from './map-frames.js'

/** @import { MapDone, MapPublish, MapResult, MapRules, Maps, MapWrite } from '../contract.js' */
/** @import { Bus } from './client.js' */
/** @import { FrameCursor } from './records.js' */
/** @import { Reads } from './reads.js' */

/** @type {MapResult} */
const NO_RESULT = Object.freeze({ offset: 0, epoch: '', suppressed: '', current: null })

/** @implements {Maps} */
export class LocalMaps {
  /** The primary counts. */
  counter = new MapCounter()
  #bus
  #reads

  /** @param {Bus} bus @param {Reads} reads */
  constructor(bus, reads) {
    this.#bus = bus
    this.#reads = reads
  }

  start() {}
  close() {}

  /** @type {Maps['publish']} */
  publish(channel, key, data, rules, options, done) {
    this.#write(channel, key, data, rules, options, false, done)
  }

  /** @type {Maps['remove']} */
  remove(channel, key, rules, options, done) {
    this.#write(channel, key, '', rules, options, true, done)
  }

  /**
   * @param {string} channel @param {string} key @param {string | Buffer} data @param {MapRules} rules
   * @param {MapPublish | MapWrite} options @param {boolean} removed @param {MapDone} done
   */
  #write(channel, key, data, rules, options, removed, done) {
    const writer = this.#bus.request(Frame.MAP_WRITE, (error, cursor) => {
      if (error || !cursor) done(error ?? errors.internal, NO_RESULT)
      else done(null, readMapResult(cursor))
    })
    writeMapWrite(writer, channel, key, data, rules, options, removed)
    writer.end()
  }

  /** @type {Maps['state']} */
  state(channel, query, rules) {
    const request = JSON.stringify({ query, rules })
    const read = (/** @type {FrameCursor} */ cursor) => {
      const [offset, epoch, next] = [cursor.f64(), cursor.epoch(), cursor.string()]
      const text = cursor.u8() === 1 ? Buffer.from(cursor.view()) : null
      const entries = text === null ? readPublications(cursor, epoch) : []
      return { entries, text, cursor: next, offset, epoch }
    }
    const ask = () =>
      this.#bus.ask(Frame.MAP_STATE, [channel, request], read).finally(() => this.#reads.leave())
    return new Promise((resolve, reject) => this.#reads.enter(() => ask().then(resolve, reject)))
  }

  /** @type {Maps['stats']} */
  stats(channel) {
    return this.#bus.ask(Frame.MAP_STATS, [channel], cursor => ({ keys: cursor.u32() }))
  }

  /** @type {Maps['clear']} */
  clear(channel) {
    return this.#bus.ask(Frame.MAP_CLEAR, [channel], () => undefined)
  }
}
