import { TimerWheel } from '../../../base/timers.js'
import { newEpoch } from '../epoch.js'
import { Channel, StoredStream } from './channel.js'
import { MapStore } from './map-store.js'
import { historyPage, UNBOUNDED } from './pages.js'
import { RecencyList } from './recency.js'
import { Results } from './results.js'
import { Statuses } from './statuses.js'
import { Stream } from './stream.js'

/** @import { HistoryFilter } from '../contract.js' */
/** @import { Presence, Present } from './channel.js' */
/** @import { Position } from './map-store.js' */
/** @import { Room } from './pages.js' */
/** @import { StoredStatus } from './statuses.js' */

/** Removal interval of expired data, ms. Readers never get expired data. */
const TICK_MS = 1000

/** Lifetime of the epoch of a channel without publications and subscribers, s. */
const KEEP_EPOCH_S = 60

const STEPS_PER_READING = 32

/**
 * All channels of the embedded broker: subscribers, history, presence, maps. A link identifies a worker.
 *
 * Channels without publications have no stream: their position is offset 0 of the shared base epoch, so dropping them
 * loses nothing. Dropping a stream of the base epoch renews the base epoch, because offset 0 of that stream must not
 * be a position of its successor. Channels in use keep the epoch known to their readers.
 *
 * `maxBytes` limits history, positions, idempotency keys and maps. Dropped at the limit, in this order: epochs of
 * unused channels; streams of unsubscribed channels and idempotency keys, least recently used first; history of
 * subscribed channels and of maps, which keep offset and epoch so that recovery fails correctly. Entries of maps are
 * never dropped.
 * @template L
 */
export class Store {
  /** @type {Map<string, Channel<L>>} */
  channels = new Map()
  subscribed = 0
  base = newEpoch()
  /** @type {RecencyList<Channel<L>>} channels without publications and subscribers, with an epoch before the base */
  unused = new RecencyList()
  /** @type {RecencyList<Channel<L>>} channels with a stream and without subscribers */
  unsubscribed = new RecencyList()
  /** @type {RecencyList<Channel<L>>} channels with history, and subscribers or map entries */
  #live = new RecencyList()
  results = new Results()
  /** @type {Map<L, Generator<undefined>>} removed workers -> removal of their entries */
  #removals = new Map()
  #streamBytes = 0
  #maxBytes
  #clock
  #onFull
  #onLeave
  #timers

  /**
   * @param {object} options @param {number} options.maxBytes @param {() => number} options.clock unix ms
   * @param {(bytes: number, live: boolean) => void} options.onFull unexpired data is dropped; `live`: history of
   *   subscribed channels
   * @param {(channel: Channel<L>, info: string) => void} options.onLeave a client of a removed worker leaves
   * @param {(channel: Channel<L>, flags: number, body: string, position: Position) => void} [options.onChange] a key of
   *   a map has changed
   * @param {() => void} [options.onMapsFull] a larger map is rejected
   * @param {() => void} [options.onStatusesFull] a status of a user is dropped
   * @param {(channel: Channel<L>) => boolean} [options.mayExpire] whether keys may be removed now
   */
  constructor({
    maxBytes,
    clock,
    onFull,
    onLeave,
    onChange = () => {},
    onMapsFull = () => {},
    onStatusesFull,
    mayExpire = () => true,
  }) {
    this.#maxBytes = maxBytes
    this.#clock = clock
    this.#onFull = onFull
    this.#onLeave = onLeave
    this.statuses = new Statuses(onStatusesFull)
    this.#timers = new TimerWheel(TICK_MS, clock)
    /** @type {MapStore<L>} */
    this.maps = new MapStore({
      store: this,
      timers: this.#timers,
      clock,
      onChange,
      onFull: onMapsFull,
      mayExpire,
    })
  }

  get bytes() {
    return this.#streamBytes + this.results.bytes + this.maps.bytes
  }

  #seconds() {
    return Math.floor(this.#clock() / 1000)
  }

  /** Returns a channel, which `settle` removes if it has no content. @param {string} name @returns {Channel<L>} */
  open(name) {
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

  /** Moves a channel just used into its list. @param {Channel<L>} channel */
  #use(channel) {
    const { stream, links } = channel
    if (stream !== null && links.length === 0 && channel.map === null)
      this.unsubscribed.add(channel, this.#seconds())
    else if (stream !== null && stream.length > 0) this.#live.add(channel, this.#seconds())
    else channel.list?.remove(channel)
  }

  /** Its content has changed. @param {Channel<L>} channel */
  settle(channel) {
    this.#use(channel)
    this.#release(channel)
  }

  /** @param {string} name @param {L} link */
  subscribe(name, link) {
    const channel = this.open(name)
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
    this.settle(channel)
  }

  /** Removes a worker: presence is correct now, `removeSome` does the work. @param {L} link */
  removeLink(link) {
    this.#removals.set(link, this.#removal(link))
  }

  /** @param {L} link @returns {Generator<undefined>} removal in steps */
  *#removal(link) {
    yield* this.maps.removal(link)
    for (const channel of this.channels.values()) {
      this.#unsubscribe(channel, link)
      for (const [client, present] of channel.presence?.clients ?? []) {
        if (present.link === link) this.#removeClient(channel, client, present)
        yield
      }
      // A new channel may have its name.
      if (channel.empty && this.channels.get(channel.name) === channel) this.#release(channel)
      yield
    }
  }

  /** @param {Channel<L>} channel @param {string} client of a dead worker @param {Present<L>} present */
  #removeClient(channel, client, present) {
    channel.removePresent(client)
    if (present.leave) this.#onLeave(channel, present.info)
  }

  /** Removes entries of dead workers, for about `ms`. @param {number} ms @returns {boolean} whether some remain */
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

  /** A channel's stream without expired parts. @param {Channel<L>} channel @param {number} now ms */
  #current(channel, now) {
    const { stream } = channel
    if (!stream) return null
    // A map keeps its position as long as it has entries.
    if (stream.expireAt <= now && channel.map === null) {
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

  /** Removes expired data, and schedules the next check. @param {StoredStream<L>} stream */
  checkStream(stream) {
    if (!this.#current(stream.channel, this.#clock())) return
    const { entriesExpireAt, expireAt } = stream
    const next = entriesExpireAt > 0 ? Math.min(entriesExpireAt, expireAt) : expireAt
    if (next > this.#clock()) this.#timers.schedule(stream, next)
  }

  /**
   * @param {string} name
   * @param {{flags: number, body: string, size: number, ttl: number, metaTtl: number, version: bigint,
   *   versionEpoch: string}} publication times in ms
   * @returns {{offset: number, epoch: string, added: boolean}} not added: the stream has a newer version
   */
  append(name, { flags, body, size, ttl, metaTtl, version, versionEpoch }) {
    const now = this.#clock()
    const channel = this.open(name)
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

  /**
   * Makes room for more map entries.
   * @param {Channel<L>} channel keeps its position @param {number} growth bytes @returns {boolean} false: no room
   */
  reserve(channel, growth) {
    if (growth <= 0 || this.bytes + growth <= this.#maxBytes) return true
    if (this.maps.bytes + growth > this.#maxBytes) return false
    // As the oldest channel it would keep those after it.
    this.#use(channel)
    this.#makeRoom(channel, growth)
    return this.bytes + growth <= this.#maxBytes
  }

  /** @param {Channel<L> | null} spared channel in use, keeps its position @param {number} [growth] bytes to add */
  #makeRoom(spared, growth = 0) {
    const most = this.#maxBytes - growth
    if (this.bytes <= most) return
    const { unused, unsubscribed, results } = this
    const full = this.bytes
    while (this.bytes > most && unused.oldest !== null) this.#forgetEpoch(unused.oldest)
    while (this.bytes > most) {
      const { oldest } = unsubscribed
      const channel = oldest === spared && !oldest?.stream?.length ? null : oldest
      const result = results.oldest
      if (result !== null && (channel === null || result.usedAt <= channel.usedAt)) results.forget(result)
      else if (channel === null) break
      else if (channel === spared) this.#clear(channel)
      else this.#dropStream(channel)
    }
    let live = false
    for (; this.bytes > most && this.#live.oldest !== null; live = true) this.#clear(this.#live.oldest)
    this.#onFull(full, live)
  }

  /** @param {Channel<L>} channel in `unused` */
  #forgetEpoch(channel) {
    this.#leaveUnused(channel)
    this.channels.delete(channel.name)
  }

  /**
   * A stream for a reader, its lifetime extended; without publications, an empty one that is not stored.
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
   * @param {string} name @param {HistoryFilter} filter @param {number} metaTtl ms
   * @param {boolean} [continued] @param {Room} [room] as for `historyPage`
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

  /** Removes a map: entries, stream and idempotency results. The next epoch is new. @param {string} name */
  clear(name) {
    this.results.clear(name, this.#seconds())
    const channel = this.channels.get(name)
    if (!channel) return
    this.maps.clear(channel)
    if (channel.stream) this.#dropStream(channel)
  }

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

  /** @param {string} name @param {string} client @param {Present<L>} present */
  addPresence(name, client, present) {
    return this.open(name).addPresent(client, present)
  }

  /** @param {string} name @param {string} client */
  removePresence(name, client) {
    const channel = this.channels.get(name)
    if (!channel) return
    channel.removePresent(client)
    this.#release(channel)
  }

  /** @param {string} name @returns {Presence<L> | null} without the clients of removed workers; null: none */
  presence(name) {
    const channel = this.channels.get(name)
    if (!channel?.presence || this.#removals.size === 0) return channel?.presence ?? null
    for (const [client, present] of channel.presence.clients)
      if (this.#removals.has(present.link)) this.#removeClient(channel, client, present)
    return channel.presence
  }

  /**
   * @param {string} name
   * @param {{epoch: string, top: number, version: bigint, versionEpoch: string, expireAt: number,
   *   entriesExpireAt: number}} position before the entries added next
   * @param {number} usedAt unix s
   */
  restoreStream(name, { epoch, top, version, versionEpoch, expireAt, entriesExpireAt }, usedAt) {
    const channel = this.open(name)
    channel.epoch = epoch
    const stream = this.#begin(channel)
    Object.assign(stream, { top, version, versionEpoch, expireAt, entriesExpireAt })
    if (channel.map === null) this.unsubscribed.add(channel, usedAt)
    this.#makeRoom(channel)
    return stream
  }

  /** @param {StoredStream<L>} stream @param {number} flags @param {string} body */
  restoreEntry(stream, flags, body) {
    const before = stream.bytes
    stream.add(flags, body, Infinity)
    this.#streamBytes += stream.bytes - before
    if (stream.channel.map !== null) this.#use(stream.channel)
    this.#makeRoom(stream.channel)
  }

  /** @param {StoredStatus} status of a snapshot */
  restoreStatus(status) {
    this.statuses.restore(status, this.#seconds())
  }

  /** @param {string} name without a stream @param {string} epoch */
  restoreEpoch(name, epoch) {
    this.#release(Object.assign(this.open(name), { epoch }))
  }

  sweep() {
    this.#timers.tick()
    const now = this.#seconds()
    this.results.sweep(now)
    this.statuses.sweep(now)
    const { unused } = this
    while (unused.oldest !== null && unused.oldest.usedAt + KEEP_EPOCH_S <= now)
      this.#forgetEpoch(unused.oldest)
  }
}
