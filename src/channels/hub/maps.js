// Fan-out of the changes of maps.
//
// A part appended to a value is sent immediately: as it is to subscribers that join parts, as a delta to
// delta-negotiated ones. The others get the whole value, at most once per key and INTERVAL_MS:
//
//   part -- value known, none sent in the last INTERVAL_MS ------> whole value
//     |                                                               ^
//     '--> pending --+-- after INTERVAL_MS, value known --------------|
//                    '-- value unknown: read from the broker ---------'
//
// Invariants:
// - While a subscriber waits for a whole value, its messages have no offset: its position stays before the part, and a
//   reconnect recovers it.
// - A value in `values` is the one at the channel's position. Subscribers that follow deltas have the state of that
//   position, hence this value as the base of the next delta.
// - Parts need positions: without them it is unknown whether a state that was read includes a part.

import { errors } from '../../base/errors.js'
import { runSlice } from '../../base/slices.js'
import { CLOCK } from './lanes.js'
import { Values } from './values.js'

/** @import { Keyed, Publication } from '../broker/contract.js' */
/** @import { Channel, Cohort } from './channel.js' */
/** @import { Hub } from './hub.js' */
/** @import { MonotonicClock } from './lanes.js' */
/** @import { Value } from './values.js' */

/** @typedef {(channel: string, key: string) => Promise<Publication | null>} ReadEntry null: no such key */

const INTERVAL_MS = 50
/** Tolerance for timers that fire early, ms. */
const EARLY_MS = 1
/** Intervals between two attempts to read an entry from a broker that fails. */
const PAUSE = 20
/** Maximum keys of a worker with a whole value sent recently, or to be sent. */
const MAX_PENDING = 10_000

const NOTHING = Buffer.alloc(0)

/** Values and unsent values of a channel. */
export class ChannelMap {
  /** @type {Map<string, Value>} */
  values = new Map()
  /** @type {Map<string, Pending>} */
  pending = new Map()
  /** Keys that subscribers without and with deltas wait for. */
  plain = 0
  delta = 0
}

/** A key with a whole value that was sent recently, or is to be sent. */
class Pending {
  /** Subscribers without and with deltas wait for it. */
  plain = false
  delta = false
  /** Counts parts. */
  parts = 0
  /** Counts other changes, after which a value that was read before is outdated. */
  changes = 0
  reading = false
  dueAt = 0
  /** Intervals to skip. */
  pause = 0
  /** @type {Publication | null} the last part received, without data; null: none */
  last = null

  /** @param {Channel} channel @param {ChannelMap} map @param {string} key */
  constructor(channel, map, key) {
    this.channel = channel
    this.map = map
    this.key = key
  }

  get waits() {
    return this.plain || this.delta
  }

  /** @param {boolean} plain @param {boolean} delta */
  wait(plain, delta) {
    if (plain && !this.plain) this.map.plain++
    if (delta && !this.delta) this.map.delta++
    this.plain ||= plain
    this.delta ||= delta
  }

  settle() {
    if (this.plain) this.map.plain--
    if (this.delta) this.map.delta--
    this.plain = this.delta = false
  }
}

/** @param {Publication} publication @param {number} offset */
const at = (publication, offset) => (publication.offset === offset ? publication : { ...publication, offset })

/** @param {Publication} part @param {Buffer} data @returns {Publication} */
const whole = (part, data) => ({ ...part, data, keyed: part.keyed && { ...part.keyed, append: false } })

export class MapFanout {
  values = new Values()
  #hub
  #readEntry
  #clock
  /** @type {Set<Pending>} ordered by `dueAt`; a timer runs while there are any */
  #queue = new Set()

  /** @param {Hub} hub @param {ReadEntry} [readEntry] @param {MonotonicClock} [clock] */
  constructor(hub, readEntry = () => Promise.reject(errors.internal), clock = CLOCK) {
    this.#hub = hub
    this.#readEntry = readEntry
    this.#clock = clock
  }

  /** Keys with a whole value to be sent, or sent recently. */
  get pending() {
    return this.#queue.size
  }

  /** The channel's position is lost. @param {Channel} channel */
  forget({ map }) {
    if (map !== null) this.values.clear(map.values)
  }

  /** The channel has no more subscriptions. @param {Channel} channel */
  drop(channel) {
    const { map } = channel
    if (map === null) return
    this.values.clear(map.values)
    for (const pending of map.pending.values()) this.#queue.delete(pending)
    map.pending.clear()
    channel.map = null
  }

  /** @param {Channel} channel @param {Publication} publication of a map, valid during the call */
  publish(channel, publication) {
    // A lost position may have removed the last subscription.
    if (channel.count === 0) return
    const { key, append } = /** @type {Keyed} */ (publication.keyed)
    if (append) return this.#publishPart(channel, publication, key)
    const pending = channel.map?.pending.get(key)
    if (pending) {
      pending.settle()
      pending.changes++
    }
    const delta = this.#replace(channel, publication)
    const { map, deltas } = channel
    if (map === null || map.plain === 0) this.#hub.send(channel, publication, null)
    else {
      this.#hub.send(channel, publication, true)
      this.#hub.send(channel, at(publication, 0), false)
    }
    if (deltas !== null) this.#hub.sendDeltas(channel, deltas, this.#forDeltas(channel, publication), delta)
  }

  /** @param {Channel} channel @param {Publication} publication */
  #forDeltas({ map }, publication) {
    return map !== null && map.delta > 0 ? at(publication, 0) : publication
  }

  /** @param {Channel} channel @param {Publication} publication @returns {Buffer | null} its delta */
  #replace(channel, { data, offset, delta, json, keyed }) {
    const { key, removed } = /** @type {Keyed} */ (keyed)
    const follows = channel.deltas?.followed ?? false
    const value = channel.map?.values.get(key)
    // Without `delta`, the value may differ from the data.
    if (removed || !delta || offset === 0 || channel.positioned === null) {
      if (value) this.values.delete(value.owner, key)
      return null
    }
    const encoded = value && follows ? this.#hub.encoder.encode(value.bytes, data) : null
    if (value || follows) {
      channel.map ??= new ChannelMap()
      this.values.set(channel.map.values, key, data, json)
    }
    return encoded
  }

  /** @param {Channel} channel @param {Publication} publication @param {string} key */
  #publishPart(channel, publication, key) {
    const { deltas } = channel
    const value = this.#grow(channel, publication, key)
    const joins = publication.offset > 0
    if (joins) this.#hub.send(channel, publication, true)
    if (deltas !== null && value !== null) {
      const { bytes } = value
      const delta = deltas.followed ? this.#hub.encoder.encodeTail(value.kept, bytes, value.checksum()) : null
      this.#hub.sendDeltas(channel, deltas, this.#forDeltas(channel, whole(publication, bytes)), delta)
    }
    const plain = channel.cohorts.some(({ events, parts }) => !events && !(joins && parts))
    const delta = channel.deltas !== null && value === null
    if (plain || delta) this.#owe(channel, key, plain, delta, publication)
  }

  /** @param {Channel} channel @param {Publication} part @param {string} key @returns {Value | null} null: unknown */
  #grow(channel, { data, offset, json }, key) {
    const value = channel.map?.values.get(key)
    if (value === undefined) return null
    if (offset > 0 && channel.positioned !== null) return this.values.append(value, data, json) ? value : null
    this.values.delete(value.owner, key)
    return null
  }

  /**
   * A subscriber that joins has these values, as have those that follow deltas.
   * @param {Channel} channel @param {readonly Publication[]} received entries and changes, in order
   */
  learn(channel, received) {
    const last = new Map(received.map(publication => [publication.keyed?.key ?? '', publication]))
    channel.map ??= new ChannelMap()
    const { values, pending } = channel.map
    for (const [key, { data, delta, json, keyed }] of last) {
      // Without `delta`, the others may have received other data.
      if (!delta || keyed?.removed || keyed?.append || pending.get(key)?.waits) continue
      if (!this.values.learn(values, key, data, json)) return
    }
  }

  /**
   * A subscriber that joins has not received parts of these keys.
   * @param {Channel} channel @param {ReadonlySet<string>} keys @param {boolean} delta
   */
  owe(channel, keys, delta) {
    for (const key of keys) {
      // It has another base.
      if (channel.map !== null) this.values.delete(channel.map.values, key)
      this.#owe(channel, key, !delta, delta, null)
    }
  }

  /**
   * @param {Channel} channel @param {string} key @param {boolean} plain @param {boolean} delta
   * @param {Publication | null} part
   */
  #owe(channel, key, plain, delta, part) {
    channel.map ??= new ChannelMap()
    let pending = channel.map.pending.get(key)
    if (pending === undefined) {
      if (this.#queue.size >= MAX_PENDING) return this.#giveUp(channel, plain, delta)
      pending = new Pending(channel, channel.map, key)
      channel.map.pending.set(key, pending)
    }
    pending.wait(plain, delta)
    pending.parts++
    // Not the data, which are valid only during the call.
    if (part !== null) pending.last = { ...part, data: NOTHING }
    if (this.#queue.has(pending)) return
    this.#enqueue(pending)
    this.#send(pending)
  }

  /** They subscribe again, and read the state. @param {Channel} channel @param {boolean} plain @param {boolean} delta */
  #giveUp({ name }, plain, delta) {
    const matches = (/** @type {Cohort} */ cohort) => (cohort.delta ? delta : plain && !cohort.parts)
    for (const session of this.#hub.members(name, matches)) session.positionLost(name)
  }

  /** @param {Pending} pending */
  #enqueue(pending) {
    pending.dueAt = this.#clock.now() + INTERVAL_MS
    this.#queue.delete(pending)
    this.#queue.add(pending)
    if (this.#queue.size === 1) this.#clock.after(() => this.#run(), INTERVAL_MS)
  }

  #run() {
    const now = this.#clock.now() + EARLY_MS
    const unfinished = runSlice(() => {
      const [pending] = this.#queue
      if (pending === undefined || pending.dueAt > now) return false
      this.#due(pending)
      return true
    })
    const [next] = this.#queue
    if (next === undefined) return
    if (unfinished) setImmediate(() => this.#run())
    else this.#clock.after(() => this.#run(), Math.max(1, next.dueAt - this.#clock.now()))
  }

  /** @param {Pending} pending */
  #due(pending) {
    this.#queue.delete(pending)
    if (!pending.waits) {
      pending.map.pending.delete(pending.key)
      return
    }
    this.#requeue(pending)
    if (pending.pause > 0) pending.pause--
    else this.#send(pending)
  }

  /** @param {Pending} pending */
  #requeue(pending) {
    pending.dueAt = this.#clock.now() + INTERVAL_MS
    this.#queue.add(pending)
  }

  /** @param {Pending} pending that waits */
  #send(pending) {
    const { map, key, last } = pending
    const value = map.values.get(key)
    if (value && last) this.#deliver(pending, whole(last, value.bytes), true)
    else if (!pending.reading) this.#read(pending)
  }

  /** @param {Pending} pending */
  #read(pending) {
    const { channel, parts, changes } = pending
    pending.reading = true
    this.#readEntry(channel.name, pending.key).then(
      entry => {
        pending.reading = false
        if (changes === pending.changes && this.#isWaiting(pending))
          this.#received(pending, entry, parts === pending.parts)
      },
      () => {
        pending.reading = false
        pending.pause = PAUSE
      },
    )
  }

  /** @param {Pending} pending */
  #isWaiting(pending) {
    return pending.waits && pending.map.pending.get(pending.key) === pending
  }

  /** @param {Pending} pending @param {Publication | null} entry @param {boolean} current no part followed */
  #received(pending, entry, current) {
    const { channel, map, key, last } = pending
    if (entry === null) {
      // Its removal has been sent, or will be.
      if (current) pending.settle()
      return
    }
    const { data, offset, json } = entry
    if (current && offset > 0 && offset === last?.offset && channel.positioned !== null)
      this.values.set(map.values, key, data, json)
    this.#deliver(pending, entry, current)
  }

  /**
   * @param {Pending} pending @param {Publication} publication whole value
   * @param {boolean} current it includes all parts that were received
   */
  #deliver(pending, publication, current) {
    const { channel, map, plain, delta, last } = pending
    const { deltas } = channel
    if (current) pending.settle()
    const streamed = publication.offset > 0
    const position = streamed ? Math.max(channel.offset, last?.offset ?? 0) : 0
    if (plain) this.#hub.send(channel, at(publication, map.plain > 0 ? 0 : position), streamed ? false : null)
    if (delta && deltas !== null)
      this.#hub.sendDeltas(channel, deltas, at(publication, map.delta > 0 ? 0 : position), null)
  }
}
