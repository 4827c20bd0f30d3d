// Snapshot file format, see snapshot.js:
//
//   'halley snapshot 1 <token>\n' | records | 32 bytes of SHA-256 of the above
//   record: u32 length of the rest | u8 kind | fields, see records.js
//
// Kinds, in this order:
//
//   BASE     text base epoch
//   STREAM   text name, text epoch, f64 top, u64 version, text version epoch, f64 expiry, f64 expiry of the
//            publications, f64 last use, u32 number of publications to follow
//   ENTRY    u8 flags, the rest: a publication as in the store
//   CHANGE   the same of a map, with u16 flags
//   MAP      text name, f64 key TTL, u32 stream size, f64 stream TTL, f64 meta TTL, u32 number of keys to follow; before
//            the stream
//   KEY      bytes key, f64 offset, f64 expiry, u64 version, text version epoch, u16 flags, the rest: as in the store
//   UNUSED   text name, text epoch
//   STATUS   text user, f64 active, f64 online, text state, f64 expiry, f64 last update; all times: unix s
//   RESULT   text channel and idempotency key, f64 offset, text epoch, f64 time
//   END      u32 streams, f64 publications, u32 results
//
// Offsets follow from `top`. Expiries are unix ms, other times unix s. Least recently used records come first.

import { FrameReader } from './frames.js'
import { RecordWriter } from './records.js'

/** @import { FileHandle } from 'node:fs/promises' */
/** @import { MapRules } from '../contract.js' */
/** @import { Channel, StoredStream } from './channel.js' */
/** @import { StoredMap } from './map-entries.js' */
/** @import { FrameCursor } from './records.js' */
/** @import { Result } from './results.js' */
/** @import { Status } from './statuses.js' */
/** @import { Store } from './store.js' */

/** @typedef {{streams: number, publications: number, results: number}} Counts */

/** Incremented on format changes. */
export const FORMAT = 1

const CHUNK = 256 * 1024

const Kind = Object.freeze({
  BASE: 1,
  STREAM: 2,
  ENTRY: 3,
  UNUSED: 4,
  RESULT: 5,
  END: 6,
  CHANGE: 7,
  MAP: 8,
  KEY: 9,
  STATUS: 140,
})
/** Flags of a CHANGE do not fit in a byte. */
const MAX_ENTRY_FLAGS = 255

/** Invalid file content; the message completes `the file ...`. */
export class SnapshotFault extends Error {}

class Encoder extends RecordWriter {
  constructor() {
    super(CHUNK * 2)
  }

  get full() {
    return this.at >= CHUNK
  }

  /** @returns {Buffer} the collected bytes; valid until the next record */
  take() {
    const chunk = this.buffer.subarray(0, this.at)
    this.at = 0
    return chunk
  }
}

/**
 * @param {Store<any>} store @param {Counts} counts filled in
 * @returns {Generator<Buffer>} chunks, each valid until the next one is requested
 */
export function encode(store, counts) {
  // Copies: entries expiring between two chunks leave the lists, and may renew the base epoch already written.
  const streams = Array.from(store.unsubscribed, ({ stream }) => /** @type {StoredStream<any>} */ (stream))
  const maps = Array.from(store.maps.all())
  return chunks(store.base, maps, streams, [...store.unused], [...store.results], counts, [...store.statuses])
}

/**
 * @param {string} base @param {StoredMap<any>[]} maps @param {StoredStream<any>[]} streams @param {Channel<any>[]} unused
 * @param {Result[]} results @param {Counts} counts @param {Iterable<Status>} statuses @returns {Generator<Buffer>}
 */
function* chunks(base, maps, streams, unused, results, counts, statuses) {
  const encoder = new Encoder()
  encoder.begin(Kind.BASE).string(base).end()
  for (const map of maps) {
    // A copy: keys may expire between two chunks.
    const entries = [...map.after('')]
    const { keyTtl, streamSize, streamTtl, metaTtl } = map.rules
    encoder.begin(Kind.MAP).string(map.channel.name).f64(keyTtl).u32(streamSize).f64(streamTtl).f64(metaTtl)
    encoder.u32(entries.length).end()
    for (const { key, offset, expireAt, version, versionEpoch, flags, body } of entries) {
      encoder
        .begin(Kind.KEY)
        .bytes(key)
        .f64(offset)
        .f64(expireAt)
        .u64(version)
        .string(versionEpoch)
        .u16(flags)
      encoder.byteString(body).end()
      if (encoder.full) yield encoder.take()
    }
    if (map.channel.stream !== null) yield* streamChunks(map.channel.stream, encoder, counts)
  }
  for (const stream of streams) yield* streamChunks(stream, encoder, counts)
  for (const { name, epoch } of unused) {
    encoder.begin(Kind.UNUSED).string(name).string(epoch).end()
    if (encoder.full) yield encoder.take()
  }
  for (const { user, active, online, state, expireAt, usedAt } of statuses) {
    encoder.begin(Kind.STATUS).string(user).f64(active).f64(online).string(state).f64(expireAt).f64(usedAt)
    encoder.end()
    if (encoder.full) yield encoder.take()
  }
  for (const { name, offset, epoch, usedAt } of results) {
    encoder.begin(Kind.RESULT).string(name).f64(offset).string(epoch).f64(usedAt).end()
    counts.results++
    if (encoder.full) yield encoder.take()
  }
  encoder.begin(Kind.END).u32(counts.streams).f64(counts.publications).u32(counts.results).end()
  yield encoder.take()
}

/** @param {StoredStream<any>} stream @param {Encoder} encoder @param {Counts} counts @returns {Generator<Buffer>} */
function* streamChunks(stream, encoder, counts) {
  const { name, usedAt } = stream.channel
  const entries = stream.newest(-1)
  encoder.begin(Kind.STREAM).string(name).string(stream.epoch).f64(stream.top).u64(stream.version)
  encoder.string(stream.versionEpoch).f64(stream.expireAt).f64(stream.entriesExpireAt).f64(usedAt)
  encoder.u32(entries.length).end()
  counts.streams++
  for (const { flags, body } of entries) {
    if (flags > MAX_ENTRY_FLAGS) encoder.begin(Kind.CHANGE).u16(flags)
    else encoder.begin(Kind.ENTRY).u8(flags)
    encoder.byteString(body).end()
    counts.publications++
    if (encoder.full) yield encoder.take()
  }
  if (encoder.full) yield encoder.take()
}

/**
 * @param {FileHandle} file @param {number} from @param {number} to positions in the file
 * @param {Store<any>} store empty
 * @returns {Promise<Counts>} of the file; the store omits expired entries and those above its limit
 * @throws {SnapshotFault}
 */
export async function decode(file, from, to, store) {
  const decoder = new Decoder(store)
  /** @type {Error | null} */
  let fault = null
  const reader = new FrameReader(
    (kind, cursor) => {
      if (fault === null) decoder.record(kind, cursor)
      if (cursor.at !== cursor.end) throw new SnapshotFault('contains a record of the wrong length')
    },
    error => {
      fault ??=
        error instanceof SnapshotFault ? error : new SnapshotFault(`contains an incomplete record: ${error}`)
    },
  )
  const chunk = Buffer.allocUnsafeSlow(CHUNK)
  while (from < to && fault === null) {
    const { bytesRead } = await file.read(chunk, 0, Math.min(CHUNK, to - from), from)
    if (bytesRead === 0) break
    reader.push(chunk.subarray(0, bytesRead))
    from += bytesRead
  }
  if (fault !== null) throw fault
  return decoder.done()
}

class Decoder {
  #store
  #counts = { streams: 0, publications: 0, results: 0 }
  /** @type {StoredStream<any> | null} the stream whose publications are being read */
  #stream = null
  #left = 0
  /** The map whose keys are being read. @type {{name: string, rules: MapRules, left: number} | null} */
  #map = null
  #complete = false

  /** @param {Store<any>} store */
  constructor(store) {
    this.#store = store
  }

  /** @param {number} kind @param {FrameCursor} cursor @throws {SnapshotFault} */
  record(kind, cursor) {
    const store = this.#store
    const isEntry = kind === Kind.ENTRY || kind === Kind.CHANGE
    if (this.#complete || isEntry !== this.#left > 0 || (kind === Kind.KEY) !== (this.#map !== null))
      throw new SnapshotFault('contains records in the wrong order')
    switch (kind) {
      case Kind.BASE:
        store.base = cursor.string()
        return
      case Kind.STREAM: {
        const [name, epoch, top, version] = [cursor.string(), cursor.string(), cursor.f64(), cursor.u64()]
        const versionEpoch = cursor.string()
        const [expireAt, entriesExpireAt, usedAt] = [cursor.f64(), cursor.f64(), cursor.f64()]
        this.#left = cursor.u32()
        const position = { epoch, top: top - this.#left, version, versionEpoch, expireAt, entriesExpireAt }
        this.#stream = store.restoreStream(name, position, usedAt)
        this.#counts.streams++
        break
      }
      case Kind.MAP: {
        const name = cursor.string()
        const [keyTtl, streamSize, streamTtl] = [cursor.f64(), cursor.u32(), cursor.f64()]
        const rules = { keyTtl, streamSize, streamTtl, metaTtl: cursor.f64() }
        const left = cursor.u32()
        this.#map = left > 0 ? { name, rules, left } : null
        return
      }
      case Kind.KEY: {
        const map = /** @type {{name: string, rules: MapRules, left: number}} */ (this.#map)
        const [key, offset, expireAt] = [cursor.bytes(), cursor.f64(), cursor.f64()]
        const [version, versionEpoch, flags] = [cursor.u64(), cursor.string(), cursor.u16()]
        const content = { key, offset, expireAt, version, versionEpoch, flags, body: cursor.rest() }
        store.maps.restore(map.name, map.rules, content)
        if (--map.left === 0) this.#map = null
        return
      }
      case Kind.CHANGE:
      case Kind.ENTRY: {
        const flags = kind === Kind.CHANGE ? cursor.u16() : cursor.u8()
        store.restoreEntry(/** @type {any} */ (this.#stream), flags, cursor.rest())
        this.#counts.publications++
        this.#left--
        break
      }
      case Kind.UNUSED:
        store.restoreEpoch(cursor.string(), cursor.string())
        return
      case Kind.STATUS:
        store.restoreStatus({
          user: cursor.string(),
          active: cursor.f64(),
          online: cursor.f64(),
          state: cursor.string(),
          expireAt: cursor.f64(),
          usedAt: cursor.f64(),
        })
        return
      case Kind.RESULT:
        store.results.restore(cursor.string(), cursor.f64(), cursor.string(), cursor.f64())
        this.#counts.results++
        return
      case Kind.END: {
        const { streams, publications, results } = this.#counts
        this.#complete = cursor.u32() === streams && cursor.f64() === publications && cursor.u32() === results
        if (!this.#complete) throw new SnapshotFault('contains the wrong number of records')
        return
      }
      default:
        throw new SnapshotFault(`contains a record of unknown kind ${kind}`)
    }
    if (this.#left === 0) store.checkStream(/** @type {any} */ (this.#stream))
  }

  done() {
    if (!this.#complete) throw new SnapshotFault('is truncated')
    return this.#counts
  }
}
