import { errors } from '../../errors.js'
import { TimerWheel } from '../../timer-wheel.js'
import { Results } from './results.js'
import { Stream } from './stream.js'

/** Precision of the removal of expired data, ms. Readers never get expired data. */
const TICK_MS = 1000

/** Bytes of a stream besides its entries. */
const STREAM_OVERHEAD = 400

/**
 * @template L
 * @typedef {object} Present one connection in a channel's presence
 * @property {L} link its worker
 * @property {string} info ClientInfo as a byte string of JSON text
 * @property {boolean} leave announce a leave if the worker dies
 */

/** One channel in the primary. @template L */
export class Channel {
  /** @type {L[]} workers with a subscriber */
  links = []
  /** @type {StoredStream<L> | null} */
  stream = null
  /** @type {Map<string, Present<L>> | null} by client id */
  presence = null

  /** @param {string} name */
  constructor(name) {
    this.name = name
  }

  get empty() {
    return this.links.length === 0 && this.stream === null && this.presence === null
  }
}

/** The stream of a channel. @template L */
class StoredStream extends Stream {
  #store

  /** @param {Store<L>} store @param {Channel<L>} channel */
  constructor(store, channel) {
    super()
    this.#store = store
    this.channel = channel
  }

  onTimer() {
    this.#store.checkStream(this)
  }
}

/**
 * All channels of the embedded broker: subscribers, history, presence. It knows no sockets; a link identifies a
 * worker.
 *
 * `maxBytes` limits its memory. At the limit, the least recently published channels lose their history (offset and
 * epoch stay, so recovery fails correctly), then whole streams go, then the oldest idempotency keys.
 * @template L
 */
export class Store {
  /** @type {Map<string, Channel<L>>} */
  channels = new Map()
  /** Channels with subscribers. */
  subscribed = 0
  /** @type {Set<Channel<L>>} channels with a stream, the oldest first */
  #streams = new Set()
  /** @type {Set<Channel<L>>} those with stored publications, the least recently published first */
  #kept = new Set()
  #results = new Results()
  #streamBytes = 0
  #maxBytes
  #clock
  #onFull
  #timers

  /**
   * @param {object} options @param {number} options.maxBytes @param {() => number} options.clock ms
   * @param {(bytes: number) => void} options.onFull called when data is dropped
   */
  constructor({ maxBytes, clock, onFull }) {
    this.#maxBytes = maxBytes
    this.#clock = clock
    this.#onFull = onFull
    this.#timers = new TimerWheel(TICK_MS, clock)
  }

  /** Estimated bytes of history, positions and idempotency keys. */
  get bytes() {
    return this.#streamBytes + this.#results.bytes
  }

  /** @param {string} name @returns {Channel<L>} */
  #open(name) {
    let channel = this.channels.get(name)
    if (!channel) this.channels.set(name, (channel = new Channel(name)))
    return channel
  }

  /** @param {Channel<L>} channel */
  #release(channel) {
    if (channel.empty) this.channels.delete(channel.name)
  }

  // Subscribers

  /** @param {string} name @param {L} link */
  subscribe(name, link) {
    const channel = this.#open(name)
    if (channel.links.includes(link)) return
    if (channel.links.push(link) === 1) this.subscribed++
  }

  /** @param {string} name @param {L} link */
  unsubscribe(name, link) {
    const channel = this.channels.get(name)
    const index = channel ? channel.links.indexOf(link) : -1
    if (!channel || index < 0) return
    this.#unlink(channel, index)
    this.#release(channel)
  }

  /** @param {Channel<L>} channel @param {number} index of a link of the channel */
  #unlink(channel, index) {
    channel.links.splice(index, 1)
    if (channel.links.length === 0) this.subscribed--
  }

  /**
   * Removes a worker: its subscriptions and its clients' presence.
   * @param {L} link
   * @param {(channel: Channel<L>, info: string) => void} left called for each client whose leave must be announced
   */
  removeLink(link, left) {
    for (const channel of this.channels.values()) {
      const index = channel.links.indexOf(link)
      if (index >= 0) this.#unlink(channel, index)
      for (const [client, present] of channel.presence ?? []) {
        if (present.link !== link) continue
        this.#removePresent(channel, client)
        if (present.leave) left(channel, present.info)
      }
      this.#release(channel)
    }
  }

  // History

  /** The stream of a channel without its expired parts. @param {Channel<L>} channel @param {number} now ms */
  #current(channel, now) {
    const { stream } = channel
    if (!stream) return null
    if (stream.expireAt <= now) {
      this.#dropStream(channel)
      return null
    }
    if (stream.entriesExpireAt > 0 && stream.entriesExpireAt <= now) this.#clear(channel)
    return stream
  }

  /** The stream of a channel, created or extended. @param {string} name @param {number} metaTtl ms */
  #touch(name, metaTtl) {
    const now = this.#clock()
    const channel = this.#open(name)
    let stream = this.#current(channel, now)
    if (!stream) {
      // #current may have removed the channel with its stream.
      this.channels.set(name, channel)
      channel.stream = stream = new StoredStream(this, channel)
      stream.expireAt = now + metaTtl
      this.#streams.add(channel)
      this.#streamBytes += STREAM_OVERHEAD + name.length
      this.#timers.schedule(stream, stream.expireAt)
      this.#makeRoom(channel)
    }
    stream.expireAt = now + metaTtl
    return { channel, stream, now }
  }

  /** @param {Channel<L>} channel */
  #clear(channel) {
    const stream = /** @type {StoredStream<L>} */ (channel.stream)
    this.#streamBytes -= stream.bytes
    stream.clear()
    this.#kept.delete(channel)
  }

  /** @param {Channel<L>} channel */
  #dropStream(channel) {
    this.#clear(channel)
    this.#timers.cancel(/** @type {StoredStream<L>} */ (channel.stream))
    this.#streamBytes -= STREAM_OVERHEAD + channel.name.length
    this.#streams.delete(channel)
    channel.stream = null
    this.#release(channel)
  }

  /** Removes what has expired, and schedules the next check. @param {StoredStream<L>} stream */
  checkStream(stream) {
    if (!this.#current(stream.channel, this.#clock())) return
    const { entriesExpireAt, expireAt } = stream
    this.#timers.schedule(stream, entriesExpireAt > 0 ? Math.min(entriesExpireAt, expireAt) : expireAt)
  }

  /**
   * Stores a publication.
   * @param {string} name
   * @param {{flags: number, body: string, size: number, ttl: number, metaTtl: number, version: bigint,
   *   versionEpoch: string}} publication times in ms
   * @returns {{offset: number, epoch: string, added: boolean}} not added: the stream has a newer version
   */
  append(name, { flags, body, size, ttl, metaTtl, version, versionEpoch }) {
    const { channel, stream, now } = this.#touch(name, Math.max(metaTtl, ttl))
    if (!stream.advanceVersion(version, versionEpoch)) {
      return { offset: stream.top, epoch: stream.epoch, added: false }
    }
    const before = stream.bytes
    const offset = stream.add(flags, body, size)
    this.#streamBytes += stream.bytes - before
    stream.entriesExpireAt = now + ttl
    this.#timers.scheduleNoLater(stream, stream.entriesExpireAt)
    this.#kept.delete(channel)
    this.#kept.add(channel)
    if (this.bytes > this.#maxBytes) this.#makeRoom(channel)
    return { offset, epoch: stream.epoch, added: true }
  }

  /** @param {Channel<L>} spared the channel in use */
  #makeRoom(spared) {
    if (this.bytes <= this.#maxBytes) return
    this.#onFull(this.bytes)
    for (const channel of this.#kept) {
      if (this.bytes <= this.#maxBytes) return
      if (channel !== spared || this.#kept.size === 1) this.#clear(channel)
    }
    for (const channel of this.#streams) {
      if (this.bytes <= this.#maxBytes) return
      if (channel !== spared) this.#dropStream(channel)
    }
    while (this.bytes > this.#maxBytes && this.#results.forgetOldest());
  }

  /** The stream of a reader, created or extended. @param {string} name @param {number} metaTtl ms @returns {Stream} */
  stream(name, metaTtl) {
    return this.#touch(name, metaTtl).stream
  }

  /** @param {string} name @param {import('../contract.js').HistoryFilter} filter @param {number} metaTtl ms */
  history(name, { limit, sinceOffset, sinceEpoch = '', reverse = false }, metaTtl) {
    const stream = this.stream(name, metaTtl)
    if (sinceEpoch !== '' && sinceEpoch !== stream.epoch) throw errors.unrecoverablePosition
    return { stream, entries: limit === 0 ? [] : stream.read(sinceOffset, limit, reverse) }
  }

  /** @param {string} name */
  removeHistory(name) {
    const channel = this.channels.get(name)
    if (channel?.stream) this.#clear(channel)
  }

  // Idempotency

  /** @param {string} name @param {string} key */
  result(name, key) {
    return this.#results.get(name, key, this.#clock())
  }

  /** @param {string} name @param {string} key @param {number} offset @param {string} epoch */
  keepResult(name, key, offset, epoch) {
    this.#results.set(name, key, offset, epoch, this.#clock())
    while (this.bytes > this.#maxBytes && this.#results.forgetOldest()) this.#onFull(this.bytes)
  }

  // Presence

  /** @param {string} name @param {string} client @param {Present<L>} present */
  addPresence(name, client, present) {
    const channel = this.#open(name)
    channel.presence ??= new Map()
    channel.presence.set(client, present)
  }

  /** @param {string} name @param {string} client */
  removePresence(name, client) {
    const channel = this.channels.get(name)
    if (!channel) return
    this.#removePresent(channel, client)
    this.#release(channel)
  }

  /** @param {Channel<L>} channel @param {string} client */
  #removePresent(channel, client) {
    if (!channel.presence?.delete(client)) return
    if (channel.presence.size === 0) channel.presence = null
  }

  /** Removes expired data. Called about once a second. */
  sweep() {
    this.#timers.tick()
    this.#results.sweep(this.#clock())
  }
}
