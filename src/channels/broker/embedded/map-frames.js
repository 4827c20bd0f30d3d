// Frames of maps. A write is a publication (see frames.js) with a key, followed by
//
//   f64 key TTL, ms | u8 mode | u32 largest value, bytes | [f64 offset, u32, epoch] | [u32 value length, value]
//
// The publication is what subscribers receive; a value follows if it differs. The primary sets the time.

import { At, Flag, Kind, readPublications, writePublication } from './frames.js'
import { writeEntries } from './pages.js'

/** @import { MapPublish, MapResult, MapRules, Suppressed } from '../contract.js' */
/** @import { FrameWriter } from './frames.js' */
/** @import { MapEntry } from './map-entries.js' */
/** @import { FrameCursor } from './records.js' */

/** From EXPECTED: a position, a value, the value is not JSON text, a part may also extend bytes. */
const Mode = Object.freeze({
  IF_NEW: 1,
  IF_EXISTS: 2,
  REFRESH: 4,
  OWNED: 8,
  EXPECTED: 16,
  VALUE: 32,
  NOT_JSON: 64,
  BYTES: 128,
})

/** By code. @type {Suppressed[]} */
const SUPPRESSED = ['', 'idempotency', 'version', 'key_exists', 'key_not_found', 'position_mismatch']

/**
 * Change of a key. `body`: as in a stream's Entry, with the key at `keyedAt`; `data` of a publication ends at `dataEnd`.
 * @typedef {{flags: number, body: string, dataEnd: number, keyedAt: number}} Change
 *
 * Keys and values are byte strings. `value`: null = the data of `body`.
 * @typedef {Change & {
 *   name: string, key: string, removed: boolean, append: boolean, rules: MapRules, version: bigint,
 *   versionEpoch: string, idempotencyKey: string, keyMode: '' | 'if_new' | 'if_exists', refresh: boolean,
 *   owned: boolean, maxBytes: number, expected: {offset: number, epoch: string} | null, value: string | null,
 *   json: boolean, bytes: boolean
 * }} Write
 */

/**
 * Writes a request's fields.
 * @param {FrameWriter} writer @param {string} channel @param {string} key @param {string | Buffer} data
 * @param {MapRules} rules @param {MapPublish} options @param {boolean} removed
 */
export function writeMapWrite(writer, channel, key, data, rules, options, removed) {
  const { json, streamJson, keyMode, expected, append = false } = options
  const streamData = append ? null : (options.streamData ?? null)
  const { keyTtl, streamSize, streamTtl, metaTtl } = rules
  const delivered = streamData ?? data
  writePublication(writer, 0, '', channel, delivered, {
    ...options,
    json: streamData === null ? json : streamJson,
    // Its subscribers do not have the value.
    delta: streamData === null && options.delta,
    historySize: streamSize,
    historyTtl: streamTtl,
    metaTtl,
    keyed: { key, removed, append, time: 0 },
  })
  let mode = 0
  if (keyMode === 'if_new') mode |= Mode.IF_NEW
  if (keyMode === 'if_exists') mode |= Mode.IF_EXISTS
  if (options.refresh) mode |= Mode.REFRESH
  if (options.owned) mode |= Mode.OWNED
  if (expected) mode |= Mode.EXPECTED
  if (streamData !== null) mode |= Mode.VALUE
  if (json === false) mode |= Mode.NOT_JSON
  if (options.bytes) mode |= Mode.BYTES
  writer
    .f64(keyTtl)
    .u8(mode)
    .u32(options.maxBytes ?? 0)
  if (expected) writer.f64(expected.offset).string(expected.epoch)
  if (streamData !== null) writer.payload(data)
}

/**
 * @param {FrameCursor} cursor at the flags of a MAP_WRITE frame @param {number} time unix ms, set in the frame
 * @returns {Write}
 */
export function readMapWrite(cursor, time) {
  const { buffer, start } = cursor
  const flags = cursor.u16()
  cursor.at = start + At.CHANNEL
  const name = cursor.string()
  const from = cursor.at
  cursor.skip()
  const dataEnd = cursor.at - from
  if (flags & Flag.INFO) cursor.skip()
  if (flags & Flag.TAGS) cursor.skip()
  const version = flags & Flag.VERSION ? cursor.u64() : 0n
  const keyedAt = cursor.at - from
  const kind = cursor.u8()
  buffer.writeDoubleLE(time, cursor.at)
  cursor.at += 8
  const key = cursor.bytes()
  const body = buffer.toString('latin1', from, cursor.at)
  const [streamSize, streamTtl, metaTtl] = [cursor.u32(), cursor.f64(), cursor.f64()]
  const [versionEpoch, idempotencyKey] = [cursor.string(), cursor.string()]
  const keyTtl = cursor.f64()
  const mode = cursor.u8()
  const maxBytes = cursor.u32()
  const expected = mode & Mode.EXPECTED ? { offset: cursor.f64(), epoch: cursor.string() } : null
  return {
    flags,
    body,
    dataEnd,
    keyedAt,
    name,
    key,
    removed: (kind & Kind.REMOVED) !== 0,
    append: (kind & Kind.APPEND) !== 0,
    rules: { keyTtl, streamSize, streamTtl, metaTtl },
    version,
    versionEpoch,
    idempotencyKey,
    keyMode: mode & Mode.IF_NEW ? 'if_new' : mode & Mode.IF_EXISTS ? 'if_exists' : '',
    refresh: (mode & Mode.REFRESH) !== 0,
    owned: (mode & Mode.OWNED) !== 0,
    maxBytes,
    expected,
    value: mode & Mode.VALUE ? cursor.bytes() : null,
    json: (mode & Mode.NOT_JSON) === 0,
    bytes: (mode & Mode.BYTES) !== 0,
  }
}

/**
 * @param {FrameWriter} writer @param {{offset: number, epoch: string, suppressed: Suppressed}} written
 * @param {MapEntry<any> | null} current
 */
export function writeMapResult(writer, { offset, epoch, suppressed }, current) {
  writer.f64(offset).epoch(epoch).u8(SUPPRESSED.indexOf(suppressed))
  writeEntries(writer, current ? [current] : [])
}

/** @param {FrameCursor} cursor @returns {MapResult} */
export function readMapResult(cursor) {
  const [offset, epoch] = [cursor.f64(), cursor.epoch()]
  const suppressed = SUPPRESSED[cursor.u8()]
  return { offset, epoch, suppressed, current: readPublications(cursor, epoch)[0] ?? null }
}
