import { Timer } from '../../../base/timers.js'
import { OVERHEAD } from '../size.js'

/** Bytes of an entry, excluding its body: object, string header, list element. */
const ENTRY_OVERHEAD = 96

/**
 * A stored publication. `body`: the frame after the channel name, as a byte string (a Buffer costs 200 bytes more).
 * @typedef {{offset: number, flags: number, body: string}} Entry
 */

/** @param {Entry} entry @returns {number} its approximate bytes in a reply to a client */
export const wireSize = ({ body }) => body.length + OVERHEAD

/**
 * History of a channel: a list trimmed at its head, and a position that only increases.
 *
 *        first            top
 *   ......[n-2][n-1][n]            entries are contiguous: offset(i) = first + i
 */
export class Stream extends Timer {
  /** Offset of the last publication ever; 0 = none. */
  top = 0
  version = 0n
  versionEpoch = ''
  /** @type {(Entry | undefined)[]} live entries begin at #head */
  #entries = []
  #head = 0
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

  /** Removes the publications; keeps offset and epoch. */
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
   * @param {number} offset @param {string} epoch '' = not checked @param {number} limit 0 = no limit
   * @returns {number} missed publications; -1: some are unavailable, or above the limit
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
   * @param {number | undefined} since exclusive @param {number} limit -1 = all @param {boolean} reverse
   * @returns {{from: number, count: number}} offset of the first publication to read; count 0: not kept
   */
  range(since, limit, reverse) {
    const first = this.top - this.length + 1
    const from = reverse ? (since ?? this.top + 1) - 1 : Math.max((since ?? 0) + 1, first)
    const outside = from > this.top || from < first
    const kept = outside ? 0 : reverse ? from - first + 1 : this.top - from + 1
    return { from, count: limit < 0 ? kept : Math.min(limit, kept) }
  }

  /**
   * @param {number | undefined} since @param {number} limit @param {boolean} reverse
   * @param {number} [maxBytes] the first publication beyond it (`wireSize`) ends the list
   * @param {number} [least] publications to read regardless of `maxBytes`
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

  /** @param {bigint} version 0n: none, resets @param {string} epoch @returns {boolean} false: outdated */
  advanceVersion(version, epoch) {
    if (version > 0n && version <= this.version && (epoch === '' || epoch === this.versionEpoch)) return false
    this.version = version
    this.versionEpoch = version > 0n ? epoch : ''
    return true
  }
}
