import { errors } from '../../../base/errors.js'
import { SlicedWork } from '../../../base/slices.js'
import { MapCounter } from '../../../metrics/map-counter.js'
import { Flag, Kind } from './frames.js'
import { entryBytes, MapEntry, StoredMap } from './map-entries.js'
import { listText, textEnd } from './map-text.js'
import { PageCache } from './page-cache.js'
import { RecordWriter } from './records.js'
import { wireSize } from './stream.js'

/** @import { TimerWheel } from '../../../base/timers.js' */
/** @import { MapRules, StateQuery, Suppressed } from '../contract.js' */
/** @import { Channel } from './channel.js' */
/** @import { Change, Write } from './map-frames.js' */
/** @import { Store } from './store.js' */

/** Maximum bytes of a page: pages delay live publications. */
const PAGE_BYTES = 256 * 1024
/** Maximum entries visited for a page: hidden ones take time too. */
const PAGE_VISITS = 10_000
/** Delay of expiry while a subscriber reads slowly, ms. */
const RETRY_MS = 1000

/** @typedef {{offset: number, epoch: string}} Position */

/**
 * @template L
 * @typedef {Position & {suppressed: Suppressed, current: MapEntry<L> | null}} Written
 */

/** @type {Position} */
const NONE = Object.freeze({ offset: 0, epoch: '' })

/** Builds byte strings in one piece. */
class BodyWriter extends RecordWriter {
  constructor() {
    super(4096)
  }

  take() {
    const body = this.buffer.toString('latin1', 0, this.at)
    this.at = 0
    return body
  }
}

/**
 * Keyed state of channels. An entry and its last change share one body; an entry replaced by `value` or extended by
 * `append` has its own. Changes are recorded in the channel's stream, and passed to `onChange` in the same step.
 * @template L
 */
export class MapStore {
  bytes = 0
  keys = 0
  counter = new MapCounter()
  #store
  #timers
  #clock
  #onChange
  #onFull
  #mayExpire
  #writer = new BodyWriter()
  /** @type {Map<L, Set<MapEntry<L>>>} */
  #owned = new Map()
  /** Cleared maps, whose timers are being cancelled. @type {StoredMap<L>[]} */
  #cleared = []
  #disposal = new SlicedWork(() => this.#disposeSome())
  #pages = new PageCache()
  /** Of the latest change in any map. */
  #revision = 0

  /**
   * @param {object} parts @param {Store<L>} parts.store @param {TimerWheel} parts.timers
   * @param {() => number} parts.clock unix ms
   * @param {(channel: Channel<L>, flags: number, body: string, position: Position) => void} parts.onChange
   * @param {() => void} parts.onFull no memory for a new key or a larger value
   * @param {(channel: Channel<L>) => boolean} parts.mayExpire false: expired keys stay a second longer, hidden
   */
  constructor({ store, timers, clock, onChange, onFull, mayExpire }) {
    this.#store = store
    this.#timers = timers
    this.#clock = clock
    this.#onChange = onChange
    this.#onFull = onFull
    this.#mayExpire = mayExpire
  }

  /**
   * @param {Write} write @param {L} link @returns {Written<L>}
   * @throws {Error} errors.badRequest, errors.internal: no memory; nothing has changed
   */
  write(write, link) {
    const { name, key, rules, removed } = write
    const channel = this.#store.channels.get(name)
    const entry = this.#current(channel, key)
    const suppressed = removed ? (entry ? '' : 'key_not_found') : this.#refusal(channel, entry, write)
    if (suppressed !== '') {
      if (suppressed === 'key_exists' && write.refresh) this.#renew(/** @type {any} */ (entry), rules)
      const current = suppressed === 'position_mismatch' ? (entry ?? null) : null
      return { ...this.#position(name, rules), suppressed, current }
    }
    const position = removed
      ? this.#remove(/** @type {MapEntry<L>} */ (entry), write, rules)
      : this.#publish(entry, write, link)
    return { ...position, suppressed, current: null }
  }

  /** @param {Channel<L> | undefined} channel @param {MapEntry<L> | undefined} entry @param {Write} write */
  #refusal(channel, entry, { version, versionEpoch, keyMode, expected }) {
    if (version > 0n && entry && version <= entry.version)
      if (versionEpoch === '' || versionEpoch === entry.versionEpoch) return 'version'
    if (keyMode === 'if_new' && entry) return 'key_exists'
    if (keyMode === 'if_exists' && !entry) return 'key_not_found'
    if (expected === null || expected.offset + (entry?.offset ?? 0) === 0) return ''
    const same = expected.offset === entry?.offset
    return same && (expected.epoch === '' || expected.epoch === channel?.epoch) ? '' : 'position_mismatch'
  }

  /** An entry; removes an expired one. @param {Channel<L> | undefined} channel @param {string} key */
  #current(channel, key) {
    const entry = channel?.map?.get(key)
    if (entry === undefined || entry.expireAt > this.#clock()) return entry
    this.#expire(entry)
  }

  /** @param {string} name @param {MapRules} rules */
  #position(name, { streamSize, metaTtl }) {
    if (streamSize === 0) return NONE
    const { top, epoch } = this.#store.stream(name, metaTtl)
    return { offset: top, epoch }
  }

  /** @param {MapEntry<L> | undefined} entry the present one @param {Write} write @param {L} link */
  #publish(entry, write, link) {
    if (write.append && write.bytes && entry && entry.flags & Flag.NOT_JSON)
      write = { ...write, json: false, flags: write.flags | Flag.NOT_JSON }
    const { name, key, rules, append, version } = write
    const { flags, body, bytes } = this.#value(entry, write)
    if (write.maxBytes > 0 && bytes > write.maxBytes) throw errors.badRequest
    const channel = this.#store.open(name)
    if (!this.#store.reserve(channel, entryBytes(key, body) - (entry?.bytes ?? 0))) {
      this.#store.settle(channel)
      this.#onFull()
      throw errors.internal
    }
    const stored = this.#keep(channel, entry, key, flags, body, rules)
    if (version > 0n) Object.assign(stored, { version, versionEpoch: write.versionEpoch })
    this.#setOwner(stored, write.owned ? link : null)
    this.#renew(stored, rules)
    this.counter.publishes++
    // The first part is the value, also for subscribers.
    const change = append && entry === undefined ? body : write.body
    const position = this.#record(channel, write.flags, change, rules)
    stored.offset = position.offset
    return position
  }

  /** @param {MapEntry<L> | undefined} entry @param {Write} write @returns the entry's new content; `bytes`: of its data */
  #value(entry, { flags, body, dataEnd, keyedAt, append, value, json }) {
    if (!append && value === null) return { flags, body, bytes: dataEnd - 4 }
    const data = append ? joined(entry, body.slice(4, dataEnd), json) : /** @type {string} */ (value)
    const rest = body.slice(dataEnd, keyedAt)
    this.#writer.bytes(data).byteString(rest).u8(0)
    this.#writer.byteString(body.slice(keyedAt + 1))
    const kind = json ? flags & ~Flag.NOT_JSON : flags | Flag.NOT_JSON
    return { flags: kind, body: this.#writer.take(), bytes: data.length }
  }

  /**
   * @param {Channel<L>} channel @param {MapEntry<L> | undefined} entry @param {string} key @param {number} flags
   * @param {string} body @param {MapRules} rules
   */
  #keep(channel, entry, key, flags, body, rules) {
    const map = channel.map ?? this.#begin(channel, rules)
    map.rules = rules
    let bytes = entryBytes(key, body)
    if (entry === undefined) {
      entry = new MapEntry(map, key, flags, body)
      map.add(entry)
      this.keys++
    } else {
      bytes -= entry.bytes
      entry.flags = flags
      entry.body = body
    }
    map.bytes += bytes
    this.bytes += bytes
    map.revision = ++this.#revision
    return entry
  }

  /** @param {Channel<L>} channel @param {MapRules} rules */
  #begin(channel, rules) {
    const map = new StoredMap(this, channel, rules)
    channel.map = map
    this.bytes += map.bytes
    return map
  }

  /** Adds a change to the stream, and delivers it. @param {Channel<L>} channel @param {number} flags @param {string} body @param {MapRules} rules */
  #record(channel, flags, body, { streamSize, streamTtl, metaTtl }) {
    const times = { size: streamSize, ttl: streamTtl, metaTtl }
    const position =
      streamSize === 0
        ? NONE
        : this.#store.append(channel.name, { flags, body, ...times, version: 0n, versionEpoch: '' })
    this.#onChange(channel, flags, body, position)
    return position
  }

  /** @param {MapEntry<L>} entry @param {Change} change with an empty publication @param {MapRules} rules */
  #remove(entry, { flags, body, keyedAt }, rules) {
    const { map } = entry
    const { channel } = map
    const tags = flags & Flag.TAGS ? '' : tagsOf(entry)
    if (tags !== '') {
      this.#writer.byteString(body.slice(0, keyedAt)).byteString(tags).byteString(body.slice(keyedAt))
      body = this.#writer.take()
      flags |= Flag.TAGS
    }
    this.counter.removals++
    this.keys--
    // The map keeps its position as long as it has entries.
    const position = this.#record(channel, flags, body, rules)
    map.delete(entry)
    this.#dispose(entry)
    map.bytes -= entry.bytes
    this.bytes -= entry.bytes
    map.revision = ++this.#revision
    if (map.size === 0) this.#end(map)
    return position
  }

  /** @param {MapEntry<L>} entry no longer in its map */
  #dispose(entry) {
    this.#timers.cancel(entry)
    this.#setOwner(entry, null)
  }

  /** @param {StoredMap<L>} map */
  #end(map) {
    map.channel.map = null
    this.bytes -= map.bytes
    this.#store.settle(map.channel)
  }

  /** @param {MapEntry<L>} entry removed without a request */
  #drop(entry) {
    this.#writer.u32(0).u8(Kind.REMOVED).f64(this.#clock()).bytes(entry.key)
    const change = { flags: Flag.KEYED, body: this.#writer.take(), dataEnd: 4, keyedAt: 4 }
    this.#remove(entry, change, entry.map.rules)
  }

  /** @param {MapEntry<L>} entry */
  #expire(entry) {
    this.#drop(entry)
    this.counter.removals--
    this.counter.expiries++
  }

  /** @param {MapEntry<L>} entry @param {MapRules} rules */
  #renew(entry, { keyTtl }) {
    const expireAt = keyTtl > 0 ? this.#clock() + keyTtl : Infinity
    if (expireAt < entry.expireAt) entry.map.revision = ++this.#revision
    entry.expireAt = expireAt
    if (keyTtl > 0) this.#timers.scheduleNoLater(entry, entry.expireAt)
  }

  /** Its timer has fired. @param {MapEntry<L>} entry */
  checkEntry(entry) {
    const { channel } = entry.map
    const now = this.#clock()
    if (channel.map !== entry.map || entry.expireAt === Infinity) return
    if (entry.expireAt > now) this.#timers.schedule(entry, entry.expireAt)
    else if (this.#mayExpire(channel)) this.#expire(entry)
    else this.#timers.schedule(entry, now + RETRY_MS)
  }

  /** @param {MapEntry<L>} entry @param {L | null} link */
  #setOwner(entry, link) {
    if (entry.owner === link) return
    if (entry.owner !== null) this.#owned.get(entry.owner)?.delete(entry)
    entry.owner = link
    if (link === null) return
    const owned = this.#owned.get(link)
    if (owned) owned.add(entry)
    else this.#owned.set(link, new Set([entry]))
  }

  /** @param {L} link of a dead worker @returns {Generator<undefined>} removal of its keys in steps */
  *removal(link) {
    for (const entry of this.#owned.get(link) ?? []) {
      if (entry.map.channel.map === entry.map) this.#drop(entry)
      yield
    }
    this.#owned.delete(link)
  }

  /**
   * @param {string} name @param {StateQuery} query key and cursor are byte strings @param {MapRules} rules
   * @returns {Position & {entries: MapEntry<L>[], text: Buffer | null, cursor: string}} see StatePage
   * @throws {Error} errors.unrecoverablePosition
   */
  page(name, query, rules) {
    const { cursor, limit, key, epoch, upTo, maxBytes } = query
    const position = this.#position(name, rules)
    if (epoch !== '' && position.epoch !== '' && epoch !== position.epoch) throw errors.unrecoverablePosition
    const map = this.#store.channels.get(name)?.map
    const now = this.#clock()
    const visible = (/** @type {MapEntry<L>} */ entry) =>
      entry.expireAt > now && (upTo === 0 || entry.offset <= upTo)
    if (key !== '') {
      const entry = map?.get(key)
      return { ...position, entries: entry && visible(entry) ? [entry] : [], text: null, cursor: '' }
    }
    const most = maxBytes > 0 ? Math.min(maxBytes, PAGE_BYTES) : PAGE_BYTES
    // Pages without newer entries are the same for all readers.
    const common = query.text && map && (upTo === 0 || upTo >= position.offset)
    const id = common ? `${map.revision} ${limit} ${most} ${cursor}` : ''
    const known = common ? this.#pages.get(id, now) : undefined
    if (known) return { ...position, entries: [], text: known.text, cursor: known.cursor }
    const { entries, next } = readPage(map, cursor, limit, most, visible)
    const text = query.text ? listText(entries) : null
    if (text === null) return { ...position, entries, text, cursor: next }
    const until = entries.reduce((first, { expireAt }) => Math.min(first, expireAt), Infinity)
    if (common) this.#pages.add(id, { text, cursor: next, until })
    return { ...position, entries: [], text, cursor: next }
  }

  /** @param {string} name @returns {number} keys */
  size(name) {
    return this.#store.channels.get(name)?.map?.size ?? 0
  }

  /** @returns {Generator<StoredMap<L>>} */
  *all() {
    for (const { map } of this.#store.channels.values()) if (map !== null) yield map
  }

  /** Removes the entries of a channel, without a change in its stream. @param {Channel<L>} channel */
  clear(channel) {
    const { map } = channel
    if (map === null) return
    this.keys -= map.size
    this.#cleared.push(map)
    this.#disposal.start()
    this.#end(map)
  }

  #disposeSome() {
    const map = this.#cleared.at(-1)
    if (map === undefined) return false
    const entries = map.takeSome()
    for (const entry of entries) this.#dispose(entry)
    if (entries.length === 0) this.#cleared.pop()
    return true
  }

  /**
   * @param {string} name @param {MapRules} rules
   * @param {{key: string, flags: number, body: string, offset: number, expireAt: number, version: bigint,
   *   versionEpoch: string}} content
   */
  restore(name, rules, { key, flags, body, offset, expireAt, version, versionEpoch }) {
    const entry = this.#keep(this.#store.open(name), undefined, key, flags, body, rules)
    Object.assign(entry, { offset, expireAt, version, versionEpoch })
    if (expireAt < Infinity) this.#timers.schedule(entry, expireAt)
  }
}

/**
 * @template L
 * @param {StoredMap<L> | null | undefined} map @param {string} cursor @param {number} limit entries
 * @param {number} most bytes @param {(entry: MapEntry<L>) => boolean} visible
 * @returns {{entries: MapEntry<L>[], next: string}} `next`: cursor of the next page, '' = none
 */
function readPage(map, cursor, limit, most, visible) {
  /** @type {MapEntry<L>[]} */
  const entries = []
  let bytes = 0
  let visits = 0
  let last = cursor
  for (const entry of map?.after(cursor) ?? []) {
    const shown = visible(entry)
    if (shown) bytes += wireSize(entry)
    const full = entries.length >= limit || (bytes > most && entries.length > 0)
    if (full || ++visits > PAGE_VISITS) return { entries, next: last }
    if (shown) entries.push(entry)
    last = entry.key
  }
  return { entries, next: '' }
}

/** @param {MapEntry<any>} entry @returns {string} its tags with their length, '' = none */
function tagsOf({ flags, body }) {
  if (!(flags & Flag.TAGS)) return ''
  const dataEnd = textEnd(body, 0)
  const from = flags & Flag.INFO ? textEnd(body, dataEnd) : dataEnd
  return body.slice(from, textEnd(body, from))
}

/**
 * @param {MapEntry<any> | undefined} entry @param {string} part byte string @param {boolean} json
 * @returns {string} its value with this part @throws {Error} errors.badRequest
 */
function joined(entry, part, json) {
  const before = entry?.body.slice(4, textEnd(entry.body, 0))
  if (entry && json !== !(entry.flags & Flag.NOT_JSON)) throw errors.badRequest
  if (!json) return (before ?? '') + part
  return before === undefined ? quoted(part) : quoted(before).slice(0, -1) + quoted(part).slice(1)
}

/** @param {string} value JSON text @returns {string} a JSON string @throws {Error} errors.badRequest */
function quoted(value) {
  const text = value.trim()
  if (text.length < 2 || text[0] !== '"' || text.at(-1) !== '"') throw errors.badRequest
  return text
}
