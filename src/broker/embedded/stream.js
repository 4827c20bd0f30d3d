import { newEpoch } from '../shared.js'

/** What an entry costs beside its bytes: the object, the string's header, its place in the list. */
const ENTRY_OVERHEAD = 96

/**
 * @typedef {object} Entry a kept publication
 * @property {number} offset
 * @property {number} flags
 * @property {string} body the publication's frame behind the channel name, as a byte string: it lives in the heap
 *   without the 200-odd bytes that a small Buffer costs
 */

/**
 * The history of one channel: a list that is trimmed at its head, and a position that only grows.
 *
 *        first            top
 *   ......[n-2][n-1][n]            entries are contiguous: offset(i) = first + i
 */
export class Stream {
  epoch = newEpoch()
  /** Offset of the newest publication ever; 0 = none yet. */
  top = 0
  version = 0n
  versionEpoch = ''
  /** @type {(Entry | undefined)[]} the live ones begin at #head */
  #entries = []
  #head = 0
  /** Bytes of what is kept. */
  bytes = 0
  /** Times in ms: when the kept publications go, when offset and epoch go. 0 = never set. */
  entriesExpireAt = 0
  expireAt = 0

  get length() {
    return this.#entries.length - this.#head
  }

  /**
   * @param {number} flags
   * @param {string} body
   * @param {number} size publications to keep
   * @returns {number} its offset
   */
  add(flags, body, size) {
    this.top++
    this.#entries.push({ offset: this.top, flags, body })
    this.bytes += body.length + ENTRY_OVERHEAD
    while (this.length > size) this.#drop()
    return this.top
  }

  #drop() {
    const entry = /** @type {Entry} */ (this.#entries[this.#head])
    this.bytes -= entry.body.length + ENTRY_OVERHEAD
    this.#entries[this.#head++] = undefined
    if (this.#head > 32 && this.#head * 2 > this.#entries.length) {
      this.#entries = this.#entries.slice(this.#head)
      this.#head = 0
    }
  }

  /** Forgets the publications; offset and epoch stay. */
  clear() {
    this.#entries = []
    this.#head = 0
    this.bytes = 0
    this.entriesExpireAt = 0
  }

  /**
   * @param {number} offset
   * @returns {Entry | undefined}
   */
  #at(offset) {
    const index = offset - (this.top - this.length + 1)
    return index < 0 ? undefined : this.#entries[this.#head + index]
  }

  /**
   * What a subscriber missed.
   * @param {number} offset the last one that it has
   * @param {string} epoch '' = not checked
   * @param {number} limit more than this is not recovered; 0 = no limit
   * @returns {Entry[] | null} null: what it missed is not all here
   */
  since(offset, epoch, limit) {
    if (epoch !== '' && epoch !== this.epoch) return null
    const missed = this.top - offset
    if (missed < 0 || missed > this.length || (limit > 0 && missed > limit)) return null
    return this.read(offset, missed, false)
  }

  /**
   * @param {number} count -1 = all
   * @returns {Entry[]} the newest ones, ascending
   */
  newest(count) {
    const wanted = count < 0 ? this.length : Math.min(count, this.length)
    return this.read(this.top - wanted, wanted, false)
  }

  /**
   * @param {number | undefined} since exclusive
   * @param {number} limit -1 = all
   * @param {boolean} reverse newest first
   * @returns {Entry[]} none when the first one would be beyond the top, or, in reverse, is trimmed
   */
  read(since, limit, reverse) {
    const first = this.top - this.length + 1
    let from = reverse ? (since ?? this.top + 1) - 1 : Math.max((since ?? 0) + 1, first)
    /** @type {Entry[]} */
    const entries = []
    if (from > this.top) return entries
    const wanted = limit < 0 ? this.length : Math.min(limit, this.length)
    for (; entries.length < wanted; from += reverse ? -1 : 1) {
      const entry = this.#at(from)
      if (!entry) break
      entries.push(entry)
    }
    return entries
  }

  /**
   * Takes a publication's version into account.
   * @param {bigint} version 0n = none, which resets what is known
   * @param {string} epoch
   * @returns {boolean} false: older than what the stream has, to be dropped
   */
  advanceVersion(version, epoch) {
    if (version > 0n && version <= this.version && (epoch === '' || epoch === this.versionEpoch)) return false
    this.version = version
    this.versionEpoch = version > 0n ? epoch : ''
    return true
  }
}
