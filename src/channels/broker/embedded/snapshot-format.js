// The content of a snapshot file, see snapshot.js:
//
//   'halley snapshot 1 <token>\n' | records | 32 bytes of SHA-256 over all before
//   record: u32 length of the rest | u8 kind | fields, see records.js
//
// Kinds, in this order:
//
//   BASE     text base epoch
//   STREAM   text name, text epoch, f64 top, u64 version, text version epoch, f64 expiry, f64 expiry of the
//            publications, f64 last use, u32 number of publications, which follow
//   ENTRY    u8 flags, the rest: a publication as in the store
//   UNUSED   text name, text epoch
//   RESULT   text channel and idempotency key, f64 offset, text epoch, f64 time
//   END      u32 streams, f64 publications, u32 results
//
// Offsets of publications follow from `top`. Expiries are unix ms, other times unix s. STREAM, UNUSED and RESULT come
// from the least to the most recently used.

import { FrameCursor, RecordWriter } from './records.js'

/** @import { FileHandle } from 'node:fs/promises' */
/** @import { Channel, StoredStream } from './channel.js' */
/** @import { Result } from './results.js' */
/** @import { Store } from './store.js' */

/** @typedef {{streams: number, publications: number, results: number}} Counts */

/** Increased with each change of the format. */
export const FORMAT = 1

/** Bytes written or read at once. */
const CHUNK = 256 * 1024

const Kind = Object.freeze({ BASE: 1, STREAM: 2, ENTRY: 3, UNUSED: 4, RESULT: 5, END: 6 })

/** A fault of the file's content; the message completes `the file ...`. */
export class SnapshotFault extends Error {}

/** Collects records until a chunk is full. */
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
 * The records of a store without subscribers, as of this call.
 * @param {Store<any>} store @param {Counts} counts is filled in
 * @returns {Generator<Buffer>} chunks, each valid until the next one is requested
 */
export function encode(store, counts) {
  // The lists are copied, because what expires between two chunks leaves them: a stream without which the base epoch
  // is renewed belongs to the base epoch that was written.
  const streams = Array.from(store.unsubscribed, ({ stream }) => /** @type {StoredStream<any>} */ (stream))
  return chunks(store.base, streams, [...store.unused], [...store.results], counts)
}

/**
 * @param {string} base @param {StoredStream<any>[]} streams @param {Channel<any>[]} unused @param {Result[]} results
 * @param {Counts} counts
 * @returns {Generator<Buffer>}
 */
function* chunks(base, streams, unused, results, counts) {
  const encoder = new Encoder()
  encoder.begin(Kind.BASE).string(base).end()
  for (const stream of streams) {
    const { name, usedAt } = stream.channel
    const entries = stream.newest(-1)
    encoder.begin(Kind.STREAM).string(name).string(stream.epoch).f64(stream.top).u64(stream.version)
    encoder.string(stream.versionEpoch).f64(stream.expireAt).f64(stream.entriesExpireAt).f64(usedAt)
    encoder.u32(entries.length).end()
    counts.streams++
    for (const { flags, body } of entries) {
      encoder.begin(Kind.ENTRY).u8(flags).byteString(body).end()
      counts.publications++
      if (encoder.full) yield encoder.take()
    }
    if (encoder.full) yield encoder.take()
  }
  for (const { name, epoch } of unused) {
    encoder.begin(Kind.UNUSED).string(name).string(epoch).end()
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

/**
 * Reads the records of a file whose checksum is right.
 * @param {FileHandle} file @param {number} from @param {number} to positions in the file
 * @param {Store<any>} store empty
 * @returns {Promise<Counts>} of the file; less may be in the store: what has expired, and what is beyond its limit
 * @throws {SnapshotFault}
 */
export async function decode(file, from, to, store) {
  const decoder = new Decoder(store)
  const cursor = new FrameCursor()
  let buffer = Buffer.allocUnsafeSlow(CHUNK)
  let [start, end] = [0, 0]
  while (from < to || start < end) {
    let needed = 4
    if (end - start >= 4) {
      needed += buffer.readUInt32LE(start)
      if (needed > end - start + to - from) throw new SnapshotFault('has a record that is too long')
    }
    if (needed > 4 && needed <= end - start) {
      cursor.buffer = buffer
      cursor.at = cursor.start = start + 4
      cursor.end = start += needed
      decoder.record(cursor)
      if (cursor.at !== cursor.end) throw new SnapshotFault('has a record of another length than its fields')
      continue
    }
    if (needed === 4 && end - start >= 4) throw new SnapshotFault('has an empty record')
    const rest = buffer.subarray(start, end)
    if (needed > buffer.length) buffer = Buffer.allocUnsafeSlow(needed)
    end = rest.copy(buffer)
    start = 0
    const { bytesRead } = await file.read(buffer, end, Math.min(buffer.length - end, to - from), from)
    if (bytesRead === 0) throw new SnapshotFault('is truncated')
    from += bytesRead
    end += bytesRead
  }
  return decoder.done()
}

/** Puts records into a store. */
class Decoder {
  #store
  #counts = { streams: 0, publications: 0, results: 0 }
  /** @type {StoredStream<any> | null} the stream whose publications are being read */
  #stream = null
  /** Publications of it that follow. */
  #left = 0
  #complete = false

  /** @param {Store<any>} store */
  constructor(store) {
    this.#store = store
  }

  /** @param {FrameCursor} cursor @throws {SnapshotFault} */
  record(cursor) {
    const store = this.#store
    const kind = cursor.u8()
    if (this.#complete || (kind === Kind.ENTRY) !== this.#left > 0)
      throw new SnapshotFault('has records in disorder')
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
      case Kind.ENTRY: {
        const flags = cursor.u8()
        store.restoreEntry(/** @type {any} */ (this.#stream), flags, cursor.rest())
        this.#counts.publications++
        this.#left--
        break
      }
      case Kind.UNUSED:
        store.restoreEpoch(cursor.string(), cursor.string())
        return
      case Kind.RESULT:
        store.results.restore(cursor.string(), cursor.f64(), cursor.string(), cursor.f64())
        this.#counts.results++
        return
      case Kind.END: {
        const { streams, publications, results } = this.#counts
        this.#complete = cursor.u32() === streams && cursor.f64() === publications && cursor.u32() === results
        if (!this.#complete) throw new SnapshotFault('has not as many records as it says')
        return
      }
      default:
        throw new SnapshotFault(`has a record of unknown kind ${kind}`)
    }
    if (this.#left === 0) store.checkStream(/** @type {any} */ (this.#stream))
  }

  /** @returns {Counts} @throws {SnapshotFault} */
  done() {
    if (!this.#complete) throw new SnapshotFault('is truncated')
    return this.#counts
  }
}
