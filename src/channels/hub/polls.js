// Shared polls in a worker: which subscriber tracks which key with which version, and the updates that each gets. The
// primary merges the keys of all workers (broker/embedded/polls.js).

import { isUtf8 } from 'node:buffer'
import { DeltaEncoder } from '../../clients/protocol/delta.js'

/** @import { PollRules, Polls, PollUpdate, Publication } from '../broker/contract.js' */
/** @import { Codec } from '../../clients/protocol/contract.js' */

/** Limit of the values kept as bases of deltas; beyond it, values are sent in full. */
const MAX_BASE_BYTES = 64 * 1024 * 1024

/**
 * @typedef {object} Tracker a session
 * @property {Codec} codec
 * @property {(message: Uint8Array) => void} send
 * @property {() => void} inappropriateProtocol disconnects, because its codec cannot encode a value
 * @property {(channel: string) => void} positionLost it MUST leave the channel
 */

/** A key of a subscriber. `full`: it has received a whole value; `expireAt`: of the signature, unix s, 0 = never. */
class Tracked {
  full = false

  /** @param {bigint} version @param {number} expireAt */
  constructor(version, expireAt) {
    this.version = version
    this.expireAt = expireAt
  }
}

/** The subscription of one session to a shared poll. */
export class Tracking {
  /** @type {Map<string, Tracked>} */
  keys = new Map()
  /** Whether it has ended. */
  over = false

  /** @param {PollFanout} polls @param {Tracker} session @param {PollChannel} channel @param {boolean} delta */
  constructor(polls, session, channel, delta) {
    this.polls = polls
    this.session = session
    this.channel = channel
    this.delta = delta
  }

  /**
   * @param {{key: string, version: bigint, expireAt: number}[]} items each key once
   * @param {(error: Error | null) => void} done updates follow it
   */
  track(items, done) {
    this.polls.track(this, items, done)
  }

  /** @param {Iterable<string>} keys without those it does not track */
  untrack(keys) {
    const { channel } = this
    const left = []
    for (const key of keys) if (this.keys.delete(key) && channel.leave(key, this)) left.push(key)
    if (left.length > 0) this.polls.untrack(channel, left)
  }

  end() {
    if (this.over) return
    this.untrack([...this.keys.keys()])
    this.over = true
    this.polls.leave(this)
  }
}

/** `pending`: requests to track it without a response; `base`: the last value sent, for deltas. */
class PollKey {
  /** @type {Set<Tracking>} */
  trackings = new Set()
  pending = 0
  /** @type {{version: bigint, data: Buffer} | null} */
  base = null
}

class PollChannel {
  /** @type {Map<string, PollKey>} */
  keys = new Map()
  /** @type {Set<Tracking>} */
  trackings = new Set()
  epoch = ''
  /** Whether the primary has opened it. */
  ready = false
  /** Requests to track keys without a response. */
  pending = 0
  /** @type {((error: Error | null) => void)[]} */
  waiting = []

  /** @param {string} name @param {PollFanout} polls */
  constructor(name, polls) {
    this.name = name
    this.polls = polls
  }

  /** @param {string} key */
  add(key) {
    let entry = this.keys.get(key)
    if (entry === undefined) this.keys.set(key, (entry = new PollKey()))
    return entry
  }

  /** @param {string} key @param {Tracking} tracking @returns {boolean} whether nobody tracks the key any more */
  leave(key, tracking) {
    this.keys.get(key)?.trackings.delete(tracking)
    return this.drop(key)
  }

  /** @param {string} key @returns {boolean} whether nobody tracks it */
  drop(key) {
    const entry = this.keys.get(key)
    if (entry === undefined || entry.trackings.size > 0 || entry.pending > 0) return false
    this.polls.setBase(entry, null)
    return this.keys.delete(key)
  }
}

export class PollFanout {
  /** @type {Map<string, PollChannel>} */
  #channels = new Map()
  #hub
  #broker
  #encoder = new DeltaEncoder()
  #baseBytes = 0

  /** @param {{delivered: number}} hub counts the updates @param {Polls} [broker] absent: no polls */
  constructor(hub, broker) {
    this.#hub = hub
    this.#broker = /** @type {Polls} */ (broker)
  }

  /** @param {string} name of a channel */
  has(name) {
    return this.#channels.has(name)
  }

  /**
   * @param {Tracker} session @param {string} name @param {PollRules} rules @param {boolean} delta delta-negotiated
   * @param {(error: Error | null, tracking: Tracking, epoch: string) => void} done call `end` of the tracking in any case
   */
  subscribe(session, name, rules, delta, done) {
    let channel = this.#channels.get(name)
    const opens = channel === undefined
    if (channel === undefined) this.#channels.set(name, (channel = new PollChannel(name, this)))
    const tracking = new Tracking(this, session, channel, delta)
    channel.trackings.add(tracking)
    const { epoch, ready, waiting } = channel
    if (ready) return done(null, tracking, epoch)
    waiting.push(error => done(error, tracking, tracking.channel.epoch))
    if (opens) this.#open(channel, rules)
  }

  /** @param {PollChannel} channel @param {PollRules} rules */
  #open(channel, rules) {
    this.#broker.open(channel.name, rules, (error, epoch) => {
      channel.epoch = epoch
      channel.ready = error === null
      // The next subscriber tries again.
      if (error !== null && this.#channels.get(channel.name) === channel) this.#channels.delete(channel.name)
      for (const waiting of channel.waiting.splice(0)) waiting(error)
    })
  }

  /**
   * Applies changed options to open channels.
   * @param {(channel: string) => PollRules | null} rulesOf null: no shared poll any more
   */
  reload(rulesOf) {
    for (const name of this.#channels.keys()) {
      const rules = rulesOf(name)
      // The epoch that it may change comes as an event.
      if (rules !== null) this.#broker.open(name, rules, () => {})
    }
  }

  /** @param {Tracking} tracking ended */
  leave(tracking) {
    const { channel } = tracking
    channel.trackings.delete(tracking)
    this.#closeIfUnused(channel)
  }

  /** @param {PollChannel} channel */
  #closeIfUnused(channel) {
    const used = channel.trackings.size > 0 || channel.pending > 0
    if (used || this.#channels.get(channel.name) !== channel) return
    this.#channels.delete(channel.name)
    this.#broker.close(channel.name)
  }

  /**
   * @param {Tracking} tracking @param {{key: string, version: bigint, expireAt: number}[]} items
   * @param {(error: Error | null) => void} done
   */
  track(tracking, items, done) {
    const { channel } = tracking
    // The primary must not stop sending updates of a key because another subscriber leaves it.
    channel.pending++
    for (const { key } of items) channel.add(key).pending++
    this.#broker.track(channel.name, items, error => {
      const joins = error === null && !tracking.over
      for (const { key, version, expireAt } of items) {
        const entry = /** @type {PollKey} */ (channel.keys.get(key))
        entry.pending--
        if (!joins) continue
        entry.trackings.add(tracking)
        const tracked = tracking.keys.get(key)
        if (tracked === undefined) tracking.keys.set(key, new Tracked(version, expireAt))
        else {
          // A renewed signature. A client that has lost its data asks with version 0.
          if (version < tracked.version) tracked.full = false
          tracked.version = version
          tracked.expireAt = expireAt
        }
      }
      const left = items.map(({ key }) => key).filter(key => channel.drop(key))
      if (left.length > 0) this.untrack(channel, left)
      channel.pending--
      this.#closeIfUnused(channel)
      done(error)
    })
  }

  /** @param {PollChannel} channel @param {string[]} keys */
  untrack({ name }, keys) {
    this.#broker.untrack(name, keys)
  }

  /** Sends an update of the primary. @param {string} name @param {PollUpdate} update */
  update(name, update) {
    const channel = this.#channels.get(name)
    const entry = channel?.keys.get(update.key)
    if (channel === undefined || entry === undefined) return
    if (update.removed) this.#removed(channel, entry, update)
    else this.#changed(channel, entry, update)
  }

  /**
   * A direct publication of the API.
   * @param {string} name @param {Publication} publication with `keyed`; the tag `epoch`: of its version
   */
  publication(name, { keyed, version, tags, json, data }) {
    const channel = this.#channels.get(name)
    const key = keyed?.key ?? ''
    if (!channel?.ready || !channel.keys.has(key)) return
    const epoch = tags?.epoch ?? ''
    this.#broker.published(name, key, version, epoch)
    // Subscribers of a former epoch subscribe again, and get the value from the backend.
    if (epoch !== '' && epoch !== channel.epoch) this.setEpoch(name, epoch)
    this.update(name, { key, version, removed: false, json, data })
  }

  /** @param {PollChannel} channel @param {PollKey} entry @param {PollUpdate} update */
  #removed(channel, entry, update) {
    const publication = publicationOf(update)
    /** @type {Map<Codec, Uint8Array>} */
    const messages = new Map()
    for (const tracking of entry.trackings) {
      tracking.keys.delete(update.key)
      const { session } = tracking
      let message = messages.get(session.codec)
      if (message === undefined)
        messages.set(session.codec, (message = copy(session.codec.publication(channel.name, publication))))
      this.#hub.delivered++
      session.send(message)
    }
    entry.trackings.clear()
    this.setBase(entry, null)
    channel.drop(update.key)
  }

  /** @param {PollChannel} channel @param {PollKey} entry @param {PollUpdate} update */
  #changed(channel, entry, update) {
    const { version, json } = update
    const publication = publicationOf(update)
    const messages = new Messages(channel.name, publication)
    const { base } = entry
    let wanted = false
    /** @type {Buffer | null | undefined} */
    let delta
    for (const tracking of entry.trackings) {
      const tracked = /** @type {Tracked} */ (tracking.keys.get(update.key))
      const { session } = tracking
      if (version <= tracked.version) continue
      if (!json && !session.codec.binary) {
        session.inappropriateProtocol()
        continue
      }
      const follows = tracking.delta && tracked.full && base !== null && tracked.version === base.version
      if (follows && delta === undefined) delta = this.#encoder.encode(base.data, update.data)
      tracked.version = version
      tracked.full = true
      wanted ||= tracking.delta
      this.#hub.delivered++
      session.send(messages.of(session.codec, tracking.delta, follows ? (delta ?? null) : null))
    }
    if (wanted) this.setBase(entry, { version, data: Buffer.from(update.data) })
  }

  /** @param {PollKey} entry @param {PollKey['base']} base null: none */
  setBase(entry, base) {
    this.#baseBytes -= entry.base?.data.length ?? 0
    const fits = base !== null && this.#baseBytes + base.data.length <= MAX_BASE_BYTES
    entry.base = fits ? base : null
    this.#baseBytes += entry.base?.data.length ?? 0
  }

  /**
   * The versions start again: subscribers with versions of another epoch subscribe again.
   * @param {string} name @param {string} epoch
   */
  setEpoch(name, epoch) {
    const channel = this.#channels.get(name)
    if (channel === undefined || channel.epoch === epoch) return
    const first = channel.epoch === ''
    channel.epoch = epoch
    for (const { session, keys } of [...channel.trackings])
      if (!first || [...keys.values()].some(({ version }) => version > 0n)) session.positionLost(name)
  }
}

/** The messages of one value: whole, whole for delta-negotiated subscribers, and as a delta, by codec. */
class Messages {
  /** @type {Map<Codec, [Uint8Array | null, Uint8Array | null, Uint8Array | null]>} */
  #byCodec = new Map()
  #channel
  #publication

  /** @param {string} channel @param {Publication} publication */
  constructor(channel, publication) {
    this.#channel = channel
    this.#publication = publication
  }

  /** @param {Codec} codec @param {boolean} negotiated @param {Buffer | null} delta null: whole */
  of(codec, negotiated, delta) {
    let messages = this.#byCodec.get(codec)
    if (messages === undefined) this.#byCodec.set(codec, (messages = [null, null, null]))
    const readable = delta !== null && (codec.binary || isUtf8(delta)) ? delta : null
    const at = readable !== null ? 2 : negotiated ? 1 : 0
    const encode = () =>
      negotiated
        ? codec.deltaPublication(this.#channel, this.#publication, readable)
        : codec.publication(this.#channel, this.#publication)
    return (messages[at] ??= copy(encode()))
  }
}

/** @param {Uint8Array} bytes valid until the codec's next call */
const copy = bytes => Buffer.from(bytes)

/** @param {PollUpdate} update @returns {Publication} */
const publicationOf = ({ key, version, removed, json, data }) => ({
  data,
  offset: 0,
  epoch: '',
  info: '',
  tags: null,
  version,
  json,
  delta: false,
  keyed: { key, removed, append: false, time: 0 },
  target: null,
})
