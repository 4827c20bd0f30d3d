// The local bus between workers and primary: length-prefixed binary frames over a stream socket. The frames of one
// event-loop turn share a write.
//
//   u32 length of the rest | u8 type | body
//
// A publication has the same bytes on its way in and out, so the primary copies it and patches four fields:
//
//   u32 length | u8 PUBLISH or PUBLICATION | u32 request | u8 flags | f64 offset | 8 x ASCII epoch
//   | u32 channel length, channel | u32 data length, data | [u32, info] | [u32, tags] | [u64 version] || [options]

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
  // primary -> worker
  PUBLICATION: 20,
  PUBLISHED: 21,
  ANSWER: 22,
  FAILED: 23,
  EVENT: 24,
  CALLED: 25,
  GONE: 26,
  // both ways, with the survey's number
  SURVEY_QUESTION: 30,
  SURVEY_ANSWER: 31,
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
export class FrameWriter {
  #socket
  /** @type {Buffer} */
  #buffer = Buffer.allocUnsafeSlow(FIRST_SIZE)
  #end = 0
  #start = 0
  #turns = 0
  #fresh = false
  #turn = () => {
    if (this.#fresh && this.#turns < MAX_TURNS && this.#end < FULL_SIZE) {
      this.#fresh = false
      this.#turns++
      setImmediate(this.#turn)
    } else {
      this.#flush()
    }
  }

  /** @param {import('node:net').Socket} socket */
  constructor(socket) {
    this.#socket = socket
  }

  /** Bytes not yet written to the kernel. */
  get backlog() {
    return this.#end + this.#socket.writableLength
  }

  /** @param {number} bytes that must fit after the end */
  #reserve(bytes) {
    const needed = this.#end + bytes
    if (needed <= this.#buffer.length) return
    const grown = Buffer.allocUnsafeSlow(Math.max(needed, this.#buffer.length * 2))
    this.#buffer.copy(grown, 0, 0, this.#end)
    this.#buffer = grown
  }

  /** @param {number} type */
  begin(type) {
    this.#reserve(64)
    this.#start = this.#end
    this.#buffer[this.#end + 4] = type
    this.#end += 5
    return this
  }

  end() {
    this.#buffer.writeUInt32LE(this.#end - this.#start - 4, this.#start)
    this.#fresh = true
    if (this.#turns > 0) return
    this.#turns = 1
    setImmediate(this.#turn)
  }

  /** @param {number} value */
  u8(value) {
    this.#reserve(1)
    this.#buffer[this.#end++] = value
    return this
  }

  /** @param {number} value */
  u32(value) {
    this.#reserve(4)
    const buffer = this.#buffer
    const at = this.#end
    buffer[at] = value
    buffer[at + 1] = value >>> 8
    buffer[at + 2] = value >>> 16
    buffer[at + 3] = value >>> 24
    this.#end = at + 4
    return this
  }

  /** @param {number} value */
  f64(value) {
    this.#reserve(8)
    if (value === 0) this.#buffer.fill(0, this.#end, this.#end + 8)
    else this.#buffer.writeDoubleLE(value, this.#end)
    this.#end += 8
    return this
  }

  /** @param {bigint} value */
  u64(value) {
    this.#reserve(8)
    this.#buffer.writeBigUInt64LE(value, this.#end)
    this.#end += 8
    return this
  }

  /** @param {string} text written as UTF-8 after its length in bytes */
  string(text) {
    this.#reserve(4 + text.length * 3)
    const length = this.#buffer.write(text, this.#end + 4)
    this.u32(length)
    this.#end += length
    return this
  }

  /** @param {string} bytes a byte string: one char for each byte */
  byteString(bytes) {
    this.#reserve(bytes.length)
    this.#end += this.#buffer.write(bytes, this.#end, 'latin1')
    return this
  }

  /** @param {string} bytes a byte string, written after its length */
  bytes(bytes) {
    return this.u32(bytes.length).byteString(bytes)
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
    this.#reserve(data.length * 3)
    this.#end += this.#buffer.write(data, this.#end)
    return this
  }

  /** @param {string} epoch 8 ASCII letters, or '' */
  epoch(epoch) {
    this.#reserve(8)
    if (epoch === '') this.#buffer.fill(0, this.#end, this.#end + 8)
    else this.#buffer.write(epoch, this.#end, 8, 'latin1')
    this.#end += 8
    return this
  }

  /** @param {Uint8Array} source @param {number} start @param {number} end */
  raw(source, start, end) {
    this.#reserve(end - start)
    this.#buffer.set(source.subarray(start, end), this.#end)
    this.#end += end - start
    return this
  }

  /** Patches the publication frame that `raw` is writing. @param {number} offset @param {string} epoch */
  patchPublication(offset, epoch) {
    this.#buffer[this.#start + At.TYPE] = Frame.PUBLICATION
    if (offset === 0) return
    this.#buffer.writeDoubleLE(offset, this.#start + At.OFFSET)
    this.#buffer.write(epoch, this.#start + At.EPOCH, 8, 'latin1')
  }

  /** Starts a frame that `raw` writes whole, length and type included. */
  beginRaw() {
    this.#start = this.#end
    return this
  }

  #flush() {
    this.#turns = 0
    const end = this.#end
    if (end === 0 || this.#socket.destroyed) {
      this.#end = 0
      return
    }
    this.#end = 0
    this.#socket.write(this.#buffer.subarray(0, end))
    // The kernel mostly accepts it at once; otherwise the socket owns the bytes until it does.
    if (this.#socket.writableLength > 0 || this.#buffer.length > KEEP_SIZE) {
      this.#buffer = Buffer.allocUnsafeSlow(FIRST_SIZE)
    }
  }
}

/** Reads the fields of one frame in their order. */
export class FrameCursor {
  /** @type {Buffer} */
  buffer = Buffer.alloc(0)
  at = 0
  start = 0
  end = 0

  u8() {
    return this.buffer[this.at++]
  }

  u32() {
    const { buffer, at } = this
    this.at = at + 4
    return (buffer[at] | (buffer[at + 1] << 8) | (buffer[at + 2] << 16) | (buffer[at + 3] << 24)) >>> 0
  }

  f64() {
    const value = this.buffer.readDoubleLE(this.at)
    this.at += 8
    return value
  }

  u64() {
    const value = this.buffer.readBigUInt64LE(this.at)
    this.at += 8
    return value
  }

  string() {
    const length = this.u32()
    const text = this.buffer.toString('utf8', this.at, this.at + length)
    this.at += length
    return text
  }

  /** @returns {string} a byte string */
  bytes() {
    const length = this.u32()
    const text = this.buffer.toString('latin1', this.at, this.at + length)
    this.at += length
    return text
  }

  /** @returns {string} a byte string: the rest of the frame */
  rest() {
    const { at } = this
    this.at = this.end
    return this.buffer.toString('latin1', at, this.end)
  }

  /** @returns {Buffer} a view, valid as long as the frame */
  view() {
    const length = this.u32()
    const view = this.buffer.subarray(this.at, this.at + length)
    this.at += length
    return view
  }

  epoch() {
    const { buffer, at } = this
    this.at = at + 8
    return buffer[at] === 0 ? '' : buffer.toString('latin1', at, at + 8)
  }

  skip() {
    const length = this.u32()
    this.at += length
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
