// Recovery and history travel in pages, so that the backlog of a worker stays small and live publications of all
// channels pass between them. A worker asks for the next page when it has got the last one; the primary keeps nothing
// in between. Publications may be trimmed meanwhile: then the recovery fails, as for a client that comes too late.

import { errors } from '../../../base/errors.js'
import { wireSize } from './stream.js'

/**
 * @typedef {import('../contract.js').HistoryFilter} HistoryFilter
 * @typedef {import('../contract.js').Recover} Recover
 * @typedef {import('./stream.js').Entry} Entry
 * @typedef {import('./stream.js').Stream} Stream
 *
 * @typedef {object} Room capacity of a page
 * @property {number} bytes
 * @property {number} least publications in the page whatever their bytes: 1, or 0 if an empty page is fine
 * @property {number} [most] bytes of a single publication that exceeds `bytes`; default: no limit
 */

/** @type {Room} */
export const UNBOUNDED = Object.freeze({ bytes: Infinity, least: 0 })

/** What a page says about the answer. */
export const Page = Object.freeze({
  /** There is no answer: not recovered. */
  NONE: 0,
  LAST: 1,
  MORE: 2,
})

/** @type {{page: number, since: number, entries: Entry[]}} */
export const NOT_RECOVERED = Object.freeze({ page: Page.NONE, since: 0, entries: [] })

/**
 * A page of a recovery. The last page is an answer in stream order: it reaches to the top.
 * @param {Stream} stream @param {Recover} recover @param {boolean} latest @param {Room} room
 * @returns {{page: number, since: number, entries: Entry[]}} `since`: the position before the page
 */
export function recoveryPage(stream, { offset, epoch, limit, maxBytes = 0 }, latest, room) {
  const most = maxBytes || Infinity
  const count = latest ? limit || -1 : stream.missed(offset, epoch, limit)
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

/**
 * A page of history.
 * @param {Stream} stream @param {HistoryFilter} filter @param {boolean} continued whether it follows another page
 * @param {Room} room
 * @returns {{page: number, entries: Entry[]}} @throws {Error} errors.unrecoverablePosition
 */
export function historyPage(
  stream,
  { limit, sinceOffset, sinceEpoch = '', reverse = false },
  continued,
  room,
) {
  if (sinceEpoch !== '' && sinceEpoch !== stream.epoch) throw errors.unrecoverablePosition
  const { from, count } = stream.range(sinceOffset, limit, reverse)
  // In reverse, what is trimmed meanwhile is only the end of the list.
  if (continued && !reverse && from !== (sinceOffset ?? 0) + 1) throw errors.unrecoverablePosition
  const entries = stream.read(sinceOffset, limit, reverse, room.bytes, room.least)
  if (entries.length === 1 && wireSize(entries[0]) > (room.most ?? Infinity)) entries.pop()
  return { page: entries.length < count ? Page.MORE : Page.LAST, entries }
}

/** @param {import('./frames.js').FrameWriter} writer @param {import('./stream.js').Entry[]} entries */
export function writeEntries(writer, entries) {
  writer.u32(entries.length)
  for (const { offset, flags, body } of entries) writer.u8(flags).f64(offset).byteString(body)
}
