// Records of bytes, for the bus (frames.js) and for snapshot files (snapshot-format.js):
//
//   u32 length of the rest | u8 type | fields
//
// Numbers are little-endian, a text is its UTF-8 after its length in bytes (u32).

/** Characters up to which a loop writes an ASCII text faster than a call into the runtime, four times at ten. */
const SHORT_TEXT = 32

/**
 * @param {Buffer} buffer with room for the text @param {number} from @param {string} text
 * @returns {number} bytes written; -1: the text is not ASCII
 */
function writeAscii(buffer, from, text) {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code > 127) return -1
    buffer[from + i] = code
  }
  return text.length
}

/** Collects records in a buffer that grows. */
export class RecordWriter {
  /** @protected @type {Buffer} */
  buffer
  /** End of what is written. @protected */
  at = 0
  /** Start of the current record. @protected */
  start = 0

  /** @param {number} size bytes of the buffer at first */
  constructor(size) {
    this.buffer = Buffer.allocUnsafeSlow(size)
  }

  /** @protected @param {number} bytes that must fit after the end */
  reserve(bytes) {
    const needed = this.at + bytes
    if (needed <= this.buffer.length) return
    const grown = Buffer.allocUnsafeSlow(Math.max(needed, this.buffer.length * 2))
    this.buffer.copy(grown, 0, 0, this.at)
    this.buffer = grown
  }

  /** @param {number} type */
  begin(type) {
    this.reserve(64)
    this.start = this.at
    this.buffer[this.at + 4] = type
    this.at += 5
    return this
  }

  end() {
    this.buffer.writeUInt32LE(this.at - this.start - 4, this.start)
  }

  /** @param {number} value */
  u8(value) {
    this.reserve(1)
    this.buffer[this.at++] = value
    return this
  }

  /** @param {number} value */
  u32(value) {
    this.reserve(4)
    const { buffer, at } = this
    buffer[at] = value
    buffer[at + 1] = value >>> 8
    buffer[at + 2] = value >>> 16
    buffer[at + 3] = value >>> 24
    this.at = at + 4
    return this
  }

  /** @param {number} value */
  f64(value) {
    if (value === 0) return this.zeros()
    this.reserve(8)
    this.buffer.writeDoubleLE(value, this.at)
    this.at += 8
    return this
  }

  /** Eight zero bytes: the number 0, or no epoch. */
  zeros() {
    this.reserve(8)
    const { buffer, at } = this
    for (let i = at; i < at + 8; i++) buffer[i] = 0
    this.at = at + 8
    return this
  }

  /** @param {bigint} value */
  u64(value) {
    this.reserve(8)
    this.buffer.writeBigUInt64LE(value, this.at)
    this.at += 8
    return this
  }

  /** @param {string} text written as UTF-8 after its length in bytes */
  string(text) {
    this.reserve(4 + text.length * 3)
    const from = this.at + 4
    let length = text.length <= SHORT_TEXT ? writeAscii(this.buffer, from, text) : -1
    if (length < 0) length = this.buffer.write(text, from)
    this.u32(length)
    this.at += length
    return this
  }

  /** @param {string} bytes a byte string: one char for each byte */
  byteString(bytes) {
    this.reserve(bytes.length)
    this.at += this.buffer.write(bytes, this.at, 'latin1')
    return this
  }

  /** @param {string} bytes a byte string, written after its length */
  bytes(bytes) {
    return this.u32(bytes.length).byteString(bytes)
  }
}

/** Reads the fields of one record in their order. */
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
