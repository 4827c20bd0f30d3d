import { Timer } from '../../../base/timers.js'
import { OVERHEAD } from '../size.js'

/** Cost of an entry besides its bytes: the object, the string's header, the place in the list. */
const ENTRY_OVERHEAD = 96

/**
 * @typedef {object} Entry a stored publication
 * @property {number} offset
 * @property {number} flags
 * @property {string} body the publication's frame after the channel name, as a byte string: it saves the 200-odd bytes
 *   that a small Buffer costs on top
 */

/** @param {Entry} entry @returns {number} its approximate bytes in a reply to a client */
export const wireSize = ({ body }) => body.length + OVERHEAD

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
   * @param {number} offset of the last publication of a subscriber
   * @param {string} epoch '' = not checked
   * @param {number} limit 0 = no limit
   * @returns {number} publications that it has missed; -1: not all of them are available, or more than the limit
   */
  missed(offset, epoch, limit) {
    if (epoch !== '' && epoch !== this.epoch) return -1
    const missed = this.top - offset
    return missed < 0 || missed > this.length || (limit > 0 && missed > limit) ? -1 : missed
  }

  /** @param {number} count -1: all @param {number} [maxBytes] as for `read` @returns {Entry[]} the newest, in order */
  newest(count, maxBytes) {
    return this.read(undefined, count, true, maxBytes).reverse()
  }

  /**
   * @param {number | undefined} since exclusive
   * @param {number} limit -1 = all
   * @param {boolean} reverse newest first
   * @returns {{from: number, count: number}} offset of the first publication to read, and their number: 0 if the first
   *   one would be beyond the top, or, in reverse, is trimmed
   */
  range(since, limit, reverse) {
    const first = this.top - this.length + 1
    const from = reverse ? (since ?? this.top + 1) - 1 : Math.max((since ?? 0) + 1, first)
    const outside = from > this.top || from < first
    const kept = outside ? 0 : reverse ? from - first + 1 : this.top - from + 1
    return { from, count: limit < 0 ? kept : Math.min(limit, kept) }
  }

  /**
   * Reads the publications of `range`.
   * @param {number | undefined} since @param {number} limit @param {boolean} reverse
   * @param {number} [maxBytes] the first publication beyond it (`wireSize`) ends the list
   * @param {number} [least] publications that are read whatever their bytes
   * @returns {Entry[]}
   */
  read(since, limit, reverse, maxBytes = Infinity, least = 1) {
    const { from, count } = this.range(since, limit, reverse)
    /** @type {Entry[]} */
    const entries = []
    let bytes = 0
    for (let at = from; entries.length < count; at += reverse ? -1 : 1) {
      const entry = /** @type {Entry} */ (this.#at(at))
      bytes += wireSize(entry)
      if (bytes > maxBytes && entries.length >= least) break
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
