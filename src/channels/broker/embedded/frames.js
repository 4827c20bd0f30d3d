// The local bus between workers and primary: length-prefixed binary frames over a stream socket. The frames of one
// event-loop turn share a write.
//
//   u32 length of the rest | u8 type | body
//
// A publication has the same bytes on its way in and out, so the primary copies it and patches four fields:
//
//   u32 length | u8 PUBLISH or PUBLICATION | u32 request | u8 flags | f64 offset | 8 x ASCII epoch
//   | u32 channel length, channel | u32 data length, data | [u32, info] | [u32, tags] | [u64 version] || [options]
//
// A publication for republishers has options, and after them:
//
//   u32 republishers | u8 source | u32 ms to wait for confirms | f64 time | u32 meta length, meta

import { FrameCursor, RecordWriter } from './records.js'

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
  SOLE: 27,
  // both ways, with the survey's number
  SURVEY_QUESTION: 30,
  SURVEY_ANSWER: 31,
  // to the process with the republishers, through the primary
  REPUBLISH: 32,
  // from it, through the primary to all workers
  REPUBLISH_FULL: 33,
})

/** Flags of a publication. */
export const Flag = Object.freeze({
  INFO: 1,
  TAGS: 2,
  VERSION: 4,
  NOT_JSON: 8,
  HISTORY: 16,
  IDEMPOTENT: 32,
  DELTA: 64,
  REPUBLISH: 128,
})

/** Positions of a publication's fixed fields, from the first byte of the frame. */
export const At = Object.freeze({ TYPE: 4, REQUEST: 5, FLAGS: 9, OFFSET: 10, EPOCH: 18, CHANNEL: 26 })

const FIRST_SIZE = 64 * 1024
/** While frames keep coming, a flush waits for at most this many turns or bytes. */
const MAX_TURNS = 8
const FULL_SIZE = 32 * 1024
/** A write buffer larger than this is released after its flush. */
const KEEP_SIZE = 4 * 1024 * 1024

/**
 * Collects frames and writes them to a socket when a turn of the event loop has brought no new ones, or enough are
 * there. Waiting for the quiet turn costs an idle loop one empty poll (some microseconds); it saves a busy one most of
 * its writes, and the other side most of its wake-ups.
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

  /** @param {import('node:net').Socket} socket */
  constructor(socket) {
    super(FIRST_SIZE)
    this.#socket = socket
  }

  /** Bytes not yet written to the kernel. */
  get backlog() {
    return this.at + this.#socket.writableLength
  }

  end() {
    // As super.end(), which would add a call to each frame (5 % of its cost).
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
    // The kernel mostly accepts it at once; otherwise the socket owns the bytes until it does.
    if (this.#socket.writableLength > 0 || this.buffer.length > KEEP_SIZE) {
      this.buffer = Buffer.allocUnsafeSlow(FIRST_SIZE)
    }
  }
}

/** Cuts a byte stream into frames. */
export class FrameReader {
  /** @type {Buffer[]} the beginning of a frame, joined when its last piece arrives */
  #pieces = []
  /** Missing bytes of that frame, as far as known. */
  #missing = 0
  #cursor = new FrameCursor()
  #handle
  #failed

  /**
   * @param {(type: number, cursor: FrameCursor) => void} handle the cursor stands after the type; valid during the call
   * @param {(error: Error) => void} failed receives errors of `handle`; the frames that follow are handled all the same
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
