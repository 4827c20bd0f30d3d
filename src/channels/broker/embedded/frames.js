// The bus between workers and primary: length-prefixed binary frames over a stream socket.
//
//   u32 length of the rest | u8 type | body
//
// Incoming and outgoing publications have the same layout; the primary copies them and patches four fields:
//
//   u32 length | u8 PUBLISH or PUBLICATION | u32 request | u16 flags | f64 offset | 8 x ASCII epoch
//   | u32 channel length, channel | u32 data length, data | [u32, info] | [u32, tags] | [u64 version]
//   | [u8 kind, f64 time, u32 key length, key] | [u32, target as JSON] || [options]
//
// Publications for republishers have options, followed by:
//
//   u32 republishers | u8 source | u32 confirm timeout, ms | f64 time | u32 meta length, meta

import { FrameCursor, RecordWriter } from './records.js'

/** @import { Socket } from 'node:net' */
/** @import { Keyed, Publication, PublishOptions } from '../contract.js' */

export const Frame = Object.freeze({
  // worker -> primary
  PUBLISH: 1,
  SUBSCRIBE: 2,
  UNSUBSCRIBE: 3,
  ANNOUNCE: 4,
  REMOVE_PRESENCE: 5,
  PRESENCE: 6,
  PRESENCE_STATS: 7,
  HISTORY: 8,
  REMOVE_HISTORY: 9,
  SURVEY: 10,
  CLAIM_USER: 11,
  RELEASE_USER: 12,
  CALL: 13,
  RETURN: 14,
  CONFIRM: 15,
  REFUSE: 16,
  SHARED: 17,
  UPDATE_PRESENCE: 18,
  // primary -> worker
  PUBLICATION: 20,
  PUBLISHED: 21,
  ANSWER: 22,
  FAILED: 23,
  EVENT: 24,
  CALLED: 25,
  GONE: 26,
  ONLY: 27,
  CLEARED: 28,
  // both ways, with the survey's number
  SURVEY_QUESTION: 30,
  SURVEY_ANSWER: 31,
  // to the process with the republishers, through the primary
  REPUBLISH: 32,
  // from it, through the primary to all workers
  REPUBLISH_FULL: 33,
  // worker -> primary
  MAP_WRITE: 40,
  MAP_STATE: 41,
  MAP_STATS: 42,
  MAP_CLEAR: 43,
  POLL_OPEN: 50,
  POLL_CLOSE: 51,
  POLL_TRACK: 52,
  POLL_UNTRACK: 53,
  POLL_PUBLISHED: 54,
  POLL_REFRESHED: 55,
  STATES_DONE: 56,
  // primary -> worker
  POLL_REFRESH: 60,
  POLL_UPDATE: 61,
  POLL_EPOCH: 62,
  // worker -> primary
  STATUS_UPDATE: 140,
  STATUS_GET: 141,
  STATUS_REMOVE: 142,
  // worker -> primary, and back to all workers
  DENY: 90,
  DENIED: 91,
  STATES: 63,
  OCCUPANCY: 64,
})

export const Flag = Object.freeze({
  INFO: 1,
  TAGS: 2,
  VERSION: 4,
  NOT_JSON: 8,
  HISTORY: 16,
  IDEMPOTENT: 32,
  DELTA: 64,
  REPUBLISH: 128,
  KEYED: 256,
  TARGET: 512,
})

/** Flags of the change of a key. */
export const Kind = Object.freeze({ REMOVED: 1, APPEND: 2 })

/** Flags of publications with options. */
const WITH_OPTIONS = Flag.HISTORY | Flag.IDEMPOTENT | Flag.REPUBLISH | Flag.KEYED

/** Positions of a publication's fixed fields, from the first byte of the frame. */
export const At = Object.freeze({ TYPE: 4, REQUEST: 5, FLAGS: 9, OFFSET: 11, EPOCH: 19, CHANNEL: 27 })

const FIRST_SIZE = 64 * 1024
/** Maximum turns and bytes by which new frames can delay a flush. */
const MAX_TURNS = 8
const FULL_SIZE = 32 * 1024
/** A write buffer larger than this is released after its flush. */
const KEEP_SIZE = 4 * 1024 * 1024

/**
 * Writes frames after an event-loop turn without new ones, or when there are enough. This costs an idle loop one empty
 * poll (some microseconds), and saves a busy one most writes and the other side most wake-ups.
 */
export class FrameWriter extends RecordWriter {
  #socket
  #turns = 0
  #fresh = false
  #turn = () => {
    if (this.#fresh && this.#turns < MAX_TURNS && this.at < FULL_SIZE) {
      this.#fresh = false
      this.#turns++
      setImmediate(this.#turn)
    } else {
      this.#flush()
    }
  }

  /** @param {Socket} socket */
  constructor(socket) {
    super(FIRST_SIZE)
    this.#socket = socket
  }

  get backlog() {
    return this.at + this.#socket.writableLength
  }

  end() {
    // Inlined super.end(): the call would add 5 % to a frame's cost.
    this.buffer.writeUInt32LE(this.at - this.start - 4, this.start)
    this.#fresh = true
    if (this.#turns > 0) return
    this.#turns = 1
    setImmediate(this.#turn)
  }

  /** @param {string | Buffer} data written after its length in bytes */
  payload(data) {
    if (typeof data === 'string') return this.string(data)
    this.u32(data.length)
    return this.raw(data, 0, data.length)
  }

  /** @param {string | Buffer} data the rest of the frame, without a length */
  bare(data) {
    if (typeof data !== 'string') return this.raw(data, 0, data.length)
    this.reserve(data.length * 3)
    this.at += this.buffer.write(data, this.at)
    return this
  }

  /** @param {string} epoch 8 ASCII letters, or '' */
  epoch(epoch) {
    if (epoch === '') return this.zeros()
    this.reserve(8)
    this.buffer.write(epoch, this.at, 8, 'latin1')
    this.at += 8
    return this
  }

  /** @param {Uint8Array} source @param {number} start @param {number} end */
  raw(source, start, end) {
    this.reserve(end - start)
    this.buffer.set(source.subarray(start, end), this.at)
    this.at += end - start
    return this
  }

  /** Patches the publication frame that `raw` is writing. @param {number} offset @param {string} epoch */
  patchPublication(offset, epoch) {
    this.buffer[this.start + At.TYPE] = Frame.PUBLICATION
    if (offset === 0) return
    this.buffer.writeDoubleLE(offset, this.start + At.OFFSET)
    this.buffer.write(epoch, this.start + At.EPOCH, 8, 'latin1')
  }

  /**
   * Patches the publication frame that `raw` is writing for the process with the republishers.
   * @param {number} number of the confirm @param {number} offset @param {string} epoch
   */
  patchRepublication(number, offset, epoch) {
    this.patchPublication(offset, epoch)
    this.buffer[this.start + At.TYPE] = Frame.REPUBLISH
    this.buffer.writeUInt32LE(number, this.start + At.REQUEST)
  }

  /** Starts a frame that `raw` writes whole, length and type included. */
  beginRaw() {
    this.start = this.at
    return this
  }

  #flush() {
    this.#turns = 0
    const end = this.at
    this.at = 0
    if (end === 0 || this.#socket.destroyed) return
    this.#socket.write(this.buffer.subarray(0, end))
    // The kernel mostly accepts it immediately; if not, the socket owns the bytes until then.
    if (this.#socket.writableLength > 0 || this.buffer.length > KEEP_SIZE) {
      this.buffer = Buffer.allocUnsafeSlow(FIRST_SIZE)
    }
  }
}

export class FrameReader {
  /** @type {Buffer[]} start of a frame, joined when its last piece arrives */
  #pieces = []
  #missing = 0
  #cursor = new FrameCursor()
  #handle
  #failed

  /**
   * @param {(type: number, cursor: FrameCursor) => void} handle the cursor is after the type; valid during the call
   * @param {(error: Error) => void} failed receives errors of `handle`; later frames are still handled
   */
  constructor(handle, failed) {
    this.#handle = handle
    this.#failed = failed
  }

  /** @param {Buffer} chunk valid during the call */
  push(chunk) {
    if (chunk.length < this.#missing) {
      this.#missing -= chunk.length
      this.#pieces.push(Buffer.from(chunk))
      return
    }
    const buffer = this.#missing > 0 ? Buffer.concat([...this.#pieces, chunk]) : chunk
    const cursor = this.#cursor
    let at = 0
    while (at + 4 <= buffer.length) {
      const length = buffer.readUInt32LE(at)
      const end = at + 4 + length
      if (end > buffer.length) break
      cursor.buffer = buffer
      cursor.start = at
      cursor.end = end
      cursor.at = at + 5
      try {
        if (length === 0) throw new Error('frame without a type')
        this.#handle(buffer[at + 4], cursor)
      } catch (error) {
        this.#failed(error)
      }
      at = end
    }
    const rest = buffer.length - at
    this.#pieces = rest > 0 ? [Buffer.from(buffer.subarray(at))] : []
    this.#missing = rest === 0 ? 0 : (rest < 4 ? 4 : 4 + buffer.readUInt32LE(at)) - rest
  }
}

/**
 * @param {FrameCursor} cursor @param {number} flags @param {number} offset @param {string} epoch
 * @param {boolean} copy copy the payload, to outlive the frame @returns {Publication}
 */
export function readPublication(cursor, flags, offset, epoch, copy) {
  const view = cursor.view()
  return {
    data: copy ? Buffer.from(view) : view,
    offset,
    epoch,
    info: flags & Flag.INFO ? cursor.string() : '',
    tags: flags & Flag.TAGS ? JSON.parse(cursor.string()) : null,
    version: flags & Flag.VERSION ? cursor.u64() : 0n,
    json: (flags & Flag.NOT_JSON) === 0,
    delta: (flags & Flag.DELTA) !== 0,
    keyed: flags & Flag.KEYED ? readKeyed(cursor) : null,
    target: flags & Flag.TARGET ? JSON.parse(cursor.string()) : null,
  }
}

/** @param {FrameCursor} cursor @returns {Keyed} */
function readKeyed(cursor) {
  const kind = cursor.u8()
  const time = cursor.f64()
  const [removed, append] = [(kind & Kind.REMOVED) !== 0, (kind & Kind.APPEND) !== 0]
  return { key: cursor.string(), removed, append, time }
}

/** @param {FrameCursor} cursor @param {string} epoch @returns {Publication[]} with copied payloads */
export function readPublications(cursor, epoch) {
  const publications = []
  for (let count = cursor.u32(); count > 0; count--) {
    const flags = cursor.u16()
    publications.push(readPublication(cursor, flags, cursor.f64(), epoch, true))
  }
  return publications
}

/**
 * @param {FrameWriter} writer @param {number} offset @param {string} epoch
 * @param {string} channel @param {string | Buffer} data @param {PublishOptions} options
 */
export function writePublication(writer, offset, epoch, channel, data, options) {
  const { historySize, info, tags, idempotencyKey, version, json, delta, republish, keyed, target } = options
  let flags = 0
  if (historySize > 0) flags |= Flag.HISTORY
  if (info) flags |= Flag.INFO
  if (tags) flags |= Flag.TAGS
  if (version) flags |= Flag.VERSION
  if (json === false) flags |= Flag.NOT_JSON
  if (idempotencyKey) flags |= Flag.IDEMPOTENT
  if (delta) flags |= Flag.DELTA
  if (republish) flags |= Flag.REPUBLISH
  if (keyed) flags |= Flag.KEYED
  if (target) flags |= Flag.TARGET
  writer.u16(flags).f64(offset).epoch(epoch).string(channel).payload(data)
  if (info) writer.string(info)
  if (tags) writer.string(JSON.stringify(tags))
  if (version) writer.u64(version)
  if (keyed) {
    const kind = (keyed.removed ? Kind.REMOVED : 0) | (keyed.append ? Kind.APPEND : 0)
    writer.u8(kind).f64(keyed.time).string(keyed.key)
  }
  if (target) writer.string(JSON.stringify(target))
  if (flags & WITH_OPTIONS) {
    writer.u32(historySize).f64(options.historyTtl).f64(options.metaTtl)
    writer.string(options.versionEpoch ?? '').string(idempotencyKey ?? '')
  }
  if (republish) {
    writer.u32(republish.to).u8(republish.source).u32(republish.wait).f64(Date.now())
    writer.string(republish.withMeta ? (options.meta ?? '') : '')
  }
}
