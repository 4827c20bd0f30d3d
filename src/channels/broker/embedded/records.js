// Binary records for the bus (frames.js) and snapshot files (snapshot-format.js):
//
//   u32 length of the rest | u8 type | fields
//
// Numbers are little-endian; texts are UTF-8, preceded by their byte length (u32).

/** Up to this length, a loop writes ASCII faster than a runtime call: four times at ten characters. */
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

export class RecordWriter {
  /** @protected @type {Buffer} */
  buffer
  /** End of written data. @protected */
  at = 0
  /** Start of the current record. @protected */
  start = 0

  /** @param {number} size initial buffer size, bytes */
  constructor(size) {
    this.buffer = Buffer.allocUnsafeSlow(size)
  }

  /** @protected @param {number} bytes to reserve after the end */
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
  u16(value) {
    this.reserve(2)
    this.buffer[this.at] = value
    this.buffer[this.at + 1] = value >>> 8
    this.at += 2
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

  /** @param {string} text written as UTF-8 after its byte length */
  string(text) {
    this.reserve(4 + text.length * 3)
    const from = this.at + 4
    let length = text.length <= SHORT_TEXT ? writeAscii(this.buffer, from, text) : -1
    if (length < 0) length = this.buffer.write(text, from)
    this.u32(length)
    this.at += length
    return this
  }

  /** @param {string} bytes a byte string: one char per byte */
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

export class FrameCursor {
  /** @type {Buffer} */
  buffer = Buffer.alloc(0)
  at = 0
  start = 0
  end = 0

  u8() {
    return this.buffer[this.at++]
  }

  u16() {
    const { buffer, at } = this
    this.at = at + 2
    return buffer[at] | (buffer[at + 1] << 8)
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

  bytes() {
    const length = this.u32()
    const text = this.buffer.toString('latin1', this.at, this.at + length)
    this.at += length
    return text
  }

  rest() {
    const { at } = this
    this.at = this.end
    return this.buffer.toString('latin1', at, this.end)
  }

  /** @returns {Buffer} a view, valid while the frame is */
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
