// Workers request recovery and history in pages, so that live publications are sent in between. The primary keeps no
// state between pages: if publications are trimmed meanwhile, the recovery fails.

import { errors } from '../../../base/errors.js'
import { Flag } from './frames.js'
import { wireSize } from './stream.js'

/** @import { HistoryFilter, Recover } from '../contract.js' */
/** @import { FrameWriter } from './frames.js' */
/** @import { Entry, Stream } from './stream.js' */

/**
 * Capacity of a page. `least`: minimum publications regardless of `bytes`, 1, or 0 if it may be empty; `most`: limit of
 * a single publication that exceeds `bytes`, default: none.
 * @typedef {{bytes: number, least: number, most?: number}} Room
 */

/** @type {Room} */
export const UNBOUNDED = Object.freeze({ bytes: Infinity, least: 0 })

/** Kinds of pages. NONE: not recovered. */
export const Page = Object.freeze({ NONE: 0, LAST: 1, MORE: 2 })

/** @type {{page: number, since: number, entries: Entry[]}} */
export const NOT_RECOVERED = Object.freeze({ page: Page.NONE, since: 0, entries: [] })

/**
 * A page of a recovery. The last page is in stream order and reaches the top.
 * @param {Stream} stream @param {Recover} recover @param {boolean} latest @param {Room} room
 * @returns {{page: number, since: number, entries: Entry[]}} `since`: the position before the page
 */
export function recoveryPage(stream, { offset, epoch, limit, maxBytes = 0 }, latest, room) {
  const most = maxBytes || Infinity
  const count = latest ? newestCount(stream, limit) : stream.missed(offset, epoch, limit)
  if (!latest && count < 0) return NOT_RECOVERED
  const all = latest ? stream.newest(count, most) : stream.read(offset, count, false, most)
  if (!latest && all.length < count) return NOT_RECOVERED
  const since = all.length > 0 ? all[0].offset - 1 : stream.top
  let bytes = 0
  let fitting = 0
  while (fitting < all.length) {
    bytes += wireSize(all[fitting])
    if (bytes > room.bytes && fitting >= room.least) break
    fitting++
  }
  if (fitting === all.length) return { page: Page.LAST, since, entries: all }
  return { page: Page.MORE, since, entries: all.slice(0, fitting) }
}

/** @param {Stream} stream @param {number} limit 0 = no limit @returns {number} publications to read, -1: all */
function newestCount(stream, limit) {
  // A client may be excluded from it.
  if (limit === 1 && (stream.newest(1)[0]?.flags ?? 0) & Flag.TARGET) return -1
  return limit || -1
}

/**
 * @param {Stream} stream @param {HistoryFilter} filter @param {boolean} continued whether it follows another page
 * @param {Room} room
 * @returns {{page: number, entries: Entry[]}} @throws {Error} errors.unrecoverablePosition
 */
export function historyPage(stream, filter, continued, room) {
  const { limit, sinceOffset, sinceEpoch = '', reverse = false } = filter
  if (sinceEpoch !== '' && sinceEpoch !== stream.epoch) throw errors.unrecoverablePosition
  const { from, count } = stream.range(sinceOffset, limit, reverse)
  // In reverse, trimming affects only the end of the list.
  if (continued && !reverse && from !== (sinceOffset ?? 0) + 1) throw errors.unrecoverablePosition
  const entries = stream.read(sinceOffset, limit, reverse, room.bytes, room.least)
  if (entries.length === 1 && wireSize(entries[0]) > (room.most ?? Infinity)) entries.pop()
  return { page: entries.length < count ? Page.MORE : Page.LAST, entries }
}

/** @param {FrameWriter} writer @param {Entry[]} entries */
export function writeEntries(writer, entries) {
  writer.u32(entries.length)
  for (const { offset, flags, body } of entries) writer.u16(flags).f64(offset).byteString(body)
}
