import { Timer } from '../../timer-wheel.js'

/** Cost of an entry besides its bytes: the object, the string's header, the place in the list. */
const ENTRY_OVERHEAD = 96

/**
 * @typedef {object} Entry a stored publication
 * @property {number} offset
 * @property {number} flags
 * @property {string} body the publication's frame after the channel name, as a byte string: it saves the 200-odd bytes
 *   that a small Buffer costs on top
 */

/**
 * The history of one channel: a list trimmed at its head, and a position that only grows.
 *
 *        first            top
 *   ......[n-2][n-1][n]            entries are contiguous: offset(i) = first + i
 *
 * Its timer belongs to the store, which removes what has expired.
 */
export class Stream extends Timer {
  /** Offset of the newest publication ever; 0 = none. */
  top = 0
  version = 0n
  versionEpoch = ''
  /** @type {(Entry | undefined)[]} the live ones begin at #head */
  #entries = []
  #head = 0
  /** Bytes of the entries. */
  bytes = 0
  /** Expiry of the entries, and of offset and epoch, in ms; 0 = never set. */
  entriesExpireAt = 0
  expireAt = 0

  /** @param {string} epoch */
  constructor(epoch) {
    super()
    this.epoch = epoch
  }

  get length() {
    return this.#entries.length - this.#head
  }

  /** @param {number} flags @param {string} body @param {number} size publications to keep @returns {number} offset */
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

  /** Removes the publications; offset and epoch stay. */
  clear() {
    this.#entries = []
    this.#head = 0
    this.bytes = 0
    this.entriesExpireAt = 0
  }

  /** @param {number} offset @returns {Entry | undefined} */
  #at(offset) {
    const index = offset - (this.top - this.length + 1)
    return index < 0 ? undefined : this.#entries[this.#head + index]
  }

  /**
   * The publications that a subscriber missed.
   * @param {number} offset of its last publication
   * @param {string} epoch '' = not checked
   * @param {number} limit 0 = no limit
   * @returns {Entry[] | null} null: not all of them are available
   */
  since(offset, epoch, limit) {
    if (epoch !== '' && epoch !== this.epoch) return null
    const missed = this.top - offset
    if (missed < 0 || missed > this.length || (limit > 0 && missed > limit)) return null
    return this.read(offset, missed, false)
  }

  /** @param {number} count -1 = all @returns {Entry[]} the newest ones, ascending */
  newest(count) {
    const wanted = count < 0 ? this.length : Math.min(count, this.length)
    return this.read(this.top - wanted, wanted, false)
  }

  /**
   * @param {number | undefined} since exclusive
   * @param {number} limit -1 = all
   * @param {boolean} reverse newest first
   * @returns {Entry[]} empty if the first one would be beyond the top, or, in reverse, is trimmed
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
   * @param {bigint} version 0n = none: resets the known one
   * @param {string} epoch @returns {boolean} false: outdated, drop it
   */
  advanceVersion(version, epoch) {
    if (version > 0n && version <= this.version && (epoch === '' || epoch === this.versionEpoch)) return false
    this.version = version
    this.versionEpoch = version > 0n ? epoch : ''
    return true
  }
}
