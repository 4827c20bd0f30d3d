import { Timer } from '../../../base/timers.js'

/** @import { MapRules } from '../contract.js' */
/** @import { Channel } from './channel.js' */
/** @import { MapStore } from './map-store.js' */

/** Bytes of an entry, excluding key and body, and of a map, excluding entries. */
const ENTRY_BYTES = 256
const MAP_BYTES = 600
/** Maximum entries of a chunk; below a quarter, it is joined with its neighbor. */
const CHUNK = 512

/** @param {string} key @param {string} body @returns {number} bytes of an entry */
export const entryBytes = (key, body) => ENTRY_BYTES + key.length + body.length

/** Key, a byte string, and value. `body`: as in a stream's Entry. @template L */
export class MapEntry extends Timer {
  offset = 0
  /** unix ms */
  expireAt = Infinity
  version = 0n
  versionEpoch = ''
  /** The worker that owns the key. @type {L | null} */
  owner = null

  /** @param {StoredMap<L>} map @param {string} key @param {number} flags @param {string} body */
  constructor(map, key, flags, body) {
    super()
    this.map = map
    this.key = key
    this.flags = flags
    this.body = body
  }

  get bytes() {
    return entryBytes(this.key, this.body)
  }

  onTimer() {
    this.map.store.checkEntry(this)
  }
}

/**
 * Entries in byte order of their keys, in sorted chunks: lookups are binary searches, changes move up to 512 pointers.
 * @template {{key: string}} T
 */
export class SortedEntries {
  /** None is empty. @type {T[][]} */
  #chunks = []
  size = 0

  /** @param {string} key @returns {number} index of the only chunk that may have the key */
  #chunkOf(key) {
    let low = 0
    for (let high = this.#chunks.length; high - low > 1; ) {
      const middle = (low + high) >>> 1
      if (this.#chunks[middle][0].key <= key) low = middle
      else high = middle
    }
    return low
  }

  /** @param {string} key @returns {T | undefined} */
  get(key) {
    const chunk = this.#chunks[this.#chunkOf(key)] ?? []
    const entry = chunk[indexIn(chunk, key)]
    return entry?.key === key ? entry : undefined
  }

  /** @param {T} entry with a new key */
  add(entry) {
    const at = this.#chunkOf(entry.key)
    const chunk = this.#chunks[at]
    this.size++
    if (chunk === undefined) return this.#chunks.push([entry])
    const index = indexIn(chunk, entry.key)
    // Ascending keys fill chunks completely.
    if (index === CHUNK && at === this.#chunks.length - 1) return this.#chunks.push([entry])
    chunk.splice(index, 0, entry)
    if (chunk.length > CHUNK) this.#chunks.splice(at + 1, 0, chunk.splice(CHUNK / 2))
  }

  /** @param {T} entry of this map */
  delete(entry) {
    const at = this.#chunkOf(entry.key)
    const chunk = this.#chunks[at]
    this.size--
    chunk.splice(indexIn(chunk, entry.key), 1)
    const next = this.#chunks[at + 1]
    if (chunk.length === 0) this.#chunks.splice(at, 1)
    else if (next && chunk.length + next.length < CHUNK / 4) {
      chunk.push(...next)
      this.#chunks.splice(at + 1, 1)
    }
  }

  /** Entries after a key. They must not change meanwhile. @param {string} key '' = all @returns {Generator<T>} */
  *after(key) {
    let at = this.#chunkOf(key)
    let index = indexIn(this.#chunks[at] ?? [], key)
    if (this.#chunks[at]?.[index]?.key === key) index++
    for (; at < this.#chunks.length; at++, index = 0) {
      const chunk = this.#chunks[at]
      while (index < chunk.length) yield chunk[index++]
    }
  }

  /** Removes and returns the last entries, for their disposal in slices. @returns {T[]} none: it is empty */
  takeSome() {
    const chunk = this.#chunks.pop() ?? []
    this.size -= chunk.length
    return chunk
  }
}

/** @param {{key: string}[]} chunk @param {string} key @returns {number} index of the first entry not before the key */
function indexIn(chunk, key) {
  let low = 0
  for (let high = chunk.length; low < high; ) {
    const middle = (low + high) >>> 1
    if (chunk[middle].key < key) low = middle + 1
    else high = middle
  }
  return low
}

/**
 * The entries of a channel, at least one.
 * @template L @extends {SortedEntries<MapEntry<L>>}
 */
export class StoredMap extends SortedEntries {
  bytes = MAP_BYTES
  /** Changes whenever a page of entries may change. */
  revision = 0

  /** @param {MapStore<L>} store @param {Channel<L>} channel @param {MapRules} rules of the last write */
  constructor(store, channel, rules) {
    super()
    this.store = store
    this.channel = channel
    this.rules = rules
  }
}
