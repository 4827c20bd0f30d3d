import { TimerWheel } from '../../../base/timers.js'
import { newEpoch } from '../epoch.js'
import { Channel, StoredStream } from './channel.js'
import { historyPage, UNBOUNDED } from './pages.js'
import { RecencyList } from './recency.js'
import { Results } from './results.js'
import { Stream } from './stream.js'

/** @import { Presence, Present } from './presence.js' */

/** Precision of the removal of expired data, ms. Readers never get expired data. */
const TICK_MS = 1000

/** Time that the epoch of a channel without publications outlives its last subscriber, s. */
const KEEP_EPOCH_S = 60

/** Steps of a removal (channels or clients) between two readings of the clock. */
const STEPS_PER_READING = 32

/**
 * All channels of the embedded broker: subscribers, history, presence. It knows no sockets; a link identifies a
 * worker.
 *
 * A channel that was never published to has no stream: its position is offset 0 of the base epoch, which all such
 * channels share, so forgetting it loses nothing. A stream begins with the epoch of its channel. When a stream of the
 * base epoch is dropped, the base epoch is renewed: offset 0 of the dropped stream must not look like a position of
 * its successor. Channels in use keep the epoch that their readers know.
 *
 * `maxBytes` limits the memory of history, positions and idempotency keys. At the limit go, in this order: epochs of
 * channels without publications and subscribers; of channels without subscribers the stream, and idempotency keys,
 * the least recently used first; the history of channels with subscribers, whose offset and epoch stay. Whatever goes,
 * recovery fails correctly. What subscriptions and presence take is limited by connections and `client.channel_limit`.
 * @template L
 */
export class Store {
  /** @type {Map<string, Channel<L>>} */
  channels = new Map()
  /** Channels with subscribers. */
  subscribed = 0
  /** Epoch of channels without publications. */
  base = newEpoch()
  /** @type {RecencyList<Channel<L>>} channels without publications and subscribers, with an epoch before the base */
  unused = new RecencyList()
  /** @type {RecencyList<Channel<L>>} channels with a stream and without subscribers */
  unsubscribed = new RecencyList()
  /** @type {RecencyList<Channel<L>>} channels with history and subscribers */
  #live = new RecencyList()
  results = new Results()
  /** @type {Map<L, Generator<undefined>>} removed workers -> the removal of their entries */
  #removals = new Map()
  #streamBytes = 0
  #maxBytes
  #clock
  #onFull
  #onLeave
  #timers

  /**
   * @param {object} options @param {number} options.maxBytes @param {() => number} options.clock unix ms
   * @param {(bytes: number, live: boolean) => void} options.onFull called when data is dropped before its time; `live`:
   *   history of channels with subscribers
   * @param {(channel: Channel<L>, info: string) => void} options.onLeave called for each client of a removed worker
   *   whose leave must be announced
   */
  constructor({ maxBytes, clock, onFull, onLeave }) {
    this.#maxBytes = maxBytes
    this.#clock = clock
    this.#onFull = onFull
    this.#onLeave = onLeave
    this.#timers = new TimerWheel(TICK_MS, clock)
  }

  /** Bytes of history, positions and idempotency keys, as measured. */
  get bytes() {
    return this.#streamBytes + this.results.bytes
  }

  #seconds() {
    return Math.floor(this.#clock() / 1000)
  }

  /** @param {string} name @returns {Channel<L>} */
  #open(name) {
    let channel = this.channels.get(name)
    if (!channel) this.channels.set(name, (channel = new Channel(name)))
    else if (channel.list === this.unused) this.#leaveUnused(channel)
    return channel
  }

  /** Removes a channel without content. @param {Channel<L>} channel */
  #release(channel) {
    if (!channel.empty || channel.list === this.unused) return
    if (channel.epoch === '' || channel.epoch === this.base) this.channels.delete(channel.name)
    else this.#keepEpoch(channel)
  }

  /** @param {Channel<L>} channel */
  #keepEpoch(channel) {
    this.unused.add(channel, this.#seconds())
    this.#streamBytes += channel.emptyBytes
    this.#makeRoom(null)
  }

  /** @param {Channel<L>} channel */
  #leaveUnused(channel) {
    this.unused.remove(channel)
    this.#streamBytes -= channel.emptyBytes
  }

  /** Puts a channel that was used now into the list it belongs to. @param {Channel<L>} channel */
  #use(channel) {
    const { stream, links } = channel
    if (stream !== null && links.length === 0) this.unsubscribed.add(channel, this.#seconds())
    else if (stream !== null && stream.length > 0) this.#live.add(channel, this.#seconds())
    else channel.list?.remove(channel)
  }

  // Subscribers

  /** @param {string} name @param {L} link */
  subscribe(name, link) {
    const channel = this.#open(name)
    if (!channel.addLink(link) || channel.links.length > 1) return
    this.subscribed++
    this.#use(channel)
  }

  /** @param {string} name @param {L} link */
  unsubscribe(name, link) {
    const channel = this.channels.get(name)
    if (channel) this.#unsubscribe(channel, link)
  }

  /** @param {Channel<L>} channel @param {L} link */
  #unsubscribe(channel, link) {
    if (!channel.removeLink(link) || channel.links.length > 0) return
    this.subscribed--
    this.#use(channel)
    this.#release(channel)
  }

  /** Removes a worker: presence is correct at once, `removeSome` does the work. @param {L} link */
  removeLink(link) {
    this.#removals.set(link, this.#removal(link))
  }

  /** @param {L} link @returns {Generator<undefined>} a step at a time */
  *#removal(link) {
    for (const channel of this.channels.values()) {
      this.#unsubscribe(channel, link)
      for (const [client, present] of channel.presence?.clients ?? []) {
        if (present.link === link) this.#removeClient(channel, client, present)
        yield
      }
      // Meanwhile another channel may have its name.
      if (channel.empty && this.channels.get(channel.name) === channel) this.#release(channel)
      yield
    }
  }

  /** @param {Channel<L>} channel @param {string} client of a dead worker @param {Present<L>} present */
  #removeClient(channel, client, present) {
    channel.removePresent(client)
    if (present.leave) this.#onLeave(channel, present.info)
  }

  /** Removes entries of dead workers, for about `ms`. @param {number} ms @returns {boolean} whether more is left */
  removeSome(ms) {
    const end = performance.now() + ms
    let steps = 0
    for (const [link, removal] of this.#removals) {
      while (!removal.next().done) {
        if (++steps % STEPS_PER_READING === 0 && performance.now() >= end) return true
      }
      this.#removals.delete(link)
    }
    return false
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

  /** Gives a channel a stream. @param {Channel<L>} channel */
  #begin(channel) {
    channel.epoch ||= this.base
    const stream = new StoredStream(this, channel)
    channel.stream = stream
    this.#streamBytes += channel.streamBytes
    return stream
  }

  /** @param {Channel<L>} channel with a stream */
  #clear(channel) {
    const stream = /** @type {StoredStream<L>} */ (channel.stream)
    this.#streamBytes -= stream.bytes
    stream.clear()
    if (channel.list === this.#live) this.#live.remove(channel)
  }

  /** @param {Channel<L>} channel with a stream */
  #dropStream(channel) {
    this.#clear(channel)
    this.#timers.cancel(/** @type {StoredStream<L>} */ (channel.stream))
    this.#streamBytes -= channel.streamBytes
    channel.list?.remove(channel)
    channel.stream = null
    if (channel.epoch === this.base) this.base = newEpoch()
    channel.epoch = ''
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
    const now = this.#clock()
    const channel = this.#open(name)
    let stream = this.#current(channel, now)
    if (!stream) {
      // #current may have removed the channel with its stream.
      this.channels.set(name, channel)
      stream = this.#begin(channel)
    }
    stream.expireAt = now + Math.max(metaTtl, ttl)
    if (!stream.advanceVersion(version, versionEpoch)) {
      return { offset: stream.top, epoch: stream.epoch, added: false }
    }
    const before = stream.bytes
    const offset = stream.add(flags, body, size)
    this.#streamBytes += stream.bytes - before
    stream.entriesExpireAt = now + ttl
    this.#timers.scheduleNoLater(stream, stream.entriesExpireAt)
    this.#use(channel)
    this.#makeRoom(channel)
    return { offset, epoch: stream.epoch, added: true }
  }

  /** @param {Channel<L> | null} spared the channel in use: it keeps its position */
  #makeRoom(spared) {
    if (this.bytes <= this.#maxBytes) return
    const { unused, unsubscribed, results } = this
    const full = this.bytes
    while (this.bytes > this.#maxBytes && unused.oldest !== null) this.#forgetEpoch(unused.oldest)
    while (this.bytes > this.#maxBytes) {
      const { oldest } = unsubscribed
      const channel = oldest === spared && !oldest?.stream?.length ? null : oldest
      const result = results.oldest
      if (result !== null && (channel === null || result.usedAt <= channel.usedAt)) results.forget(result)
      else if (channel === null) break
      else if (channel === spared) this.#clear(channel)
      else this.#dropStream(channel)
    }
    let live = false
    for (; this.bytes > this.#maxBytes && this.#live.oldest !== null; live = true)
      this.#clear(this.#live.oldest)
    this.#onFull(full, live)
  }

  /** @param {Channel<L>} channel in `unused` */
  #forgetEpoch(channel) {
    this.#leaveUnused(channel)
    this.channels.delete(channel.name)
  }

  /**
   * The stream of a reader; the life of offset and epoch is extended. For a channel without publications it is an
   * empty one that is not stored.
   * @param {string} name @param {number} metaTtl ms @returns {Stream}
   */
  stream(name, metaTtl) {
    const now = this.#clock()
    const channel = this.channels.get(name)
    const stream = channel ? this.#current(channel, now) : null
    if (stream) {
      stream.expireAt = now + metaTtl
      return stream
    }
    if (channel && !channel.empty) channel.epoch ||= this.base
    return new Stream(channel?.epoch || this.base)
  }

  /**
   * @param {string} name @param {import('../contract.js').HistoryFilter} filter @param {number} metaTtl ms
   * @param {boolean} [continued] @param {import('./pages.js').Room} [room] as for `historyPage`
   */
  history(name, filter, metaTtl, continued = false, room = UNBOUNDED) {
    const stream = this.stream(name, metaTtl)
    return { stream, ...historyPage(stream, filter, continued, room) }
  }

  /** @param {string} name */
  removeHistory(name) {
    const channel = this.channels.get(name)
    if (channel?.stream) this.#clear(channel)
  }

  // Idempotency

  /** @param {string} name @param {string} key */
  result(name, key) {
    return this.results.get(name, key, this.#seconds())
  }

  /** @param {string} name @param {string} key @param {number} offset @param {string} epoch @param {boolean} confirmed */
  keepResult(name, key, offset, epoch, confirmed = true) {
    const result = this.results.set(name, key, offset, epoch, this.#seconds(), confirmed)
    this.#makeRoom(null)
    return result
  }

  // Presence

  /** @param {string} name @param {string} client @param {Present<L>} present */
  addPresence(name, client, present) {
    this.#open(name).addPresent(client, present)
  }

  /** @param {string} name @param {string} client */
  removePresence(name, client) {
    const channel = this.channels.get(name)
    if (!channel) return
    channel.removePresent(client)
    this.#release(channel)
  }

  /** @param {string} name @returns {Presence<L> | null} without the clients of removed workers; null: nobody */
  presence(name) {
    const channel = this.channels.get(name)
    if (!channel?.presence || this.#removals.size === 0) return channel?.presence ?? null
    for (const [client, present] of channel.presence.clients)
      if (this.#removals.has(present.link)) this.#removeClient(channel, client, present)
    return channel.presence
  }

  // Snapshots

  /**
   * @param {string} name
   * @param {{epoch: string, top: number, version: bigint, versionEpoch: string, expireAt: number,
   *   entriesExpireAt: number}} position before the entries that are added next
   * @param {number} usedAt unix s
   */
  restoreStream(name, { epoch, top, version, versionEpoch, expireAt, entriesExpireAt }, usedAt) {
    const channel = this.#open(name)
    channel.epoch = epoch
    const stream = this.#begin(channel)
    Object.assign(stream, { top, version, versionEpoch, expireAt, entriesExpireAt })
    this.unsubscribed.add(channel, usedAt)
    this.#makeRoom(channel)
    return stream
  }

  /** @param {StoredStream<L>} stream @param {number} flags @param {string} body */
  restoreEntry(stream, flags, body) {
    const before = stream.bytes
    stream.add(flags, body, Infinity)
    this.#streamBytes += stream.bytes - before
    this.#makeRoom(stream.channel)
  }

  /** @param {string} name without a stream @param {string} epoch */
  restoreEpoch(name, epoch) {
    this.#release(Object.assign(this.#open(name), { epoch }))
  }

  /** Removes expired data. Called about once a second. */
  sweep() {
    this.#timers.tick()
    const now = this.#seconds()
    this.results.sweep(now)
    for (
      let { oldest } = this.unused;
      oldest !== null && oldest.usedAt + KEEP_EPOCH_S <= now;
      oldest = this.unused.oldest
    )
      this.#forgetEpoch(oldest)
  }
}
