// Protobuf wire format: tagged fields, numbers as base-128 varints, other values length-prefixed. protobufjs accepts
// strings past the end, does not enforce the length of inner messages, and misreads varints of 6 to 9 bytes in a 32-bit
// field. Its writer allocates an object per value and takes more than twice the time.

import { disconnects } from '../../base/errors.js'

/** The lowest three bits of a tag. */
export const Wire = Object.freeze({ VARINT: 0, FIXED64: 1, LENGTH: 2, GROUP: 3, GROUP_END: 4, FIXED32: 5 })

/** Reads untrusted bytes; all methods throw disconnects.badRequest. */
export class WireReader {
  #bytes
  #at = 0
  #end

  /** @param {Buffer} bytes */
  constructor(bytes) {
    this.#bytes = bytes
    this.#end = bytes.length
  }

  get done() {
    return this.#at === this.#end
  }

  #byte() {
    if (this.#at >= this.#end) throw disconnects.badRequest
    return this.#bytes[this.#at++]
  }

  /** @returns {number} field number, from 1, shifted left by 3, plus the Wire type */
  tag() {
    const tag = this.uint32()
    if (tag >>> 3 === 0) throw disconnects.badRequest
    return tag
  }

  /** @returns {number} lowest 32 bits of a varint, unsigned */
  uint32() {
    let value = 0
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = this.#byte()
      if (shift < 32) value |= (byte & 127) << shift
      if (byte < 128) return value >>> 0
    }
    throw disconnects.badRequest
  }

  /** Exact up to 2^53. */
  uint64() {
    return Number(this.bigUint64())
  }

  /** Exact up to 2^53. */
  int64() {
    return Number(BigInt.asIntN(64, this.bigUint64()))
  }

  bigUint64() {
    let value = 0n
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.#byte()
      value |= BigInt(byte & 127) << shift
      if (byte < 128) return BigInt.asUintN(64, value)
    }
    throw disconnects.badRequest
  }

  #valueEnd() {
    const length = this.uint32()
    if (length > this.#end - this.#at) throw disconnects.badRequest
    return this.#at + length
  }

  bytes() {
    const end = this.#valueEnd()
    const value = this.#bytes.subarray(this.#at, end)
    this.#at = end
    return value
  }

  text() {
    const end = this.#valueEnd()
    const value = this.#bytes.toString('utf8', this.#at, end)
    this.#at = end
    return value
  }

  /** Enters a message: `done` is true at its end. Returns the argument of `leave`. */
  enter() {
    const outer = this.#end
    this.#end = this.#valueEnd()
    return outer
  }

  /** @param {number} outer */
  leave(outer) {
    this.#end = outer
  }

  /** @param {number} wire */
  skip(wire) {
    // Obsolete groups may be nested: no recursion.
    let groups = 0
    for (;;) {
      if (wire === Wire.VARINT) this.uint32()
      else if (wire === Wire.LENGTH) this.#at = this.#valueEnd()
      else if (wire === Wire.FIXED64) this.#at += 8
      else if (wire === Wire.FIXED32) this.#at += 4
      else if (wire === Wire.GROUP) groups++
      else if (wire !== Wire.GROUP_END || groups-- === 0) throw disconnects.badRequest
      if (this.#at > this.#end) throw disconnects.badRequest
      if (groups === 0) return
      wire = this.tag() & 7
    }
  }
}

/** Larger buffers are released, bytes. */
const KEEP_SIZE = 1024 * 1024
/** Characters that fit 127 bytes of UTF-8: a one-byte length. */
const SHORT_TEXT = 42

/** @param {number} value */
function varintSize(value) {
  let size = 1
  for (; value > 127; size++) value = Math.floor(value / 128)
  return size
}

/** Writes into reused memory. Zero values are omitted, as in proto3. */
export class WireWriter {
  #bytes
  #size
  #end = 0
  /** Starts of open messages, outermost first, and bytes reserved for their lengths. */
  #starts = [0, 0, 0, 0, 0, 0, 0, 0]
  #lengthSizes = [0, 0, 0, 0, 0, 0, 0, 0]
  #depth = 0

  /** @param {number} [size] initial bytes */
  constructor(size = 64 * 1024) {
    this.#size = size
    this.#bytes = Buffer.allocUnsafeSlow(size)
  }

  clear() {
    this.#end = 0
    this.#depth = 0
    return this
  }

  /** Valid until the next `clear`. */
  view() {
    return this.#bytes.subarray(0, this.#end)
  }

  /** Closes all open messages and returns a copy. */
  finish() {
    while (this.#depth > 0) this.close()
    const copy = Buffer.from(this.view())
    if (this.#bytes.length > KEEP_SIZE) this.#bytes = Buffer.allocUnsafeSlow(this.#size)
    return copy
  }

  /** @param {number} size bytes */
  #reserve(size) {
    const needed = this.#end + size
    if (needed <= this.#bytes.length) return
    const grown = Buffer.allocUnsafeSlow(needed * 2)
    this.#bytes.copy(grown, 0, 0, this.#end)
    this.#bytes = grown
  }

  /** @param {number} value 0 to 2^53 - 1; needs reserved bytes */
  #varint(value) {
    while (value > 127) {
      this.#bytes[this.#end++] = (value % 128) | 128
      value = Math.floor(value / 128)
    }
    this.#bytes[this.#end++] = value
  }

  /** @param {number} field @param {number} wire */
  #tag(field, wire) {
    this.#reserve(16)
    this.#varint((field << 3) | wire)
  }

  /** @param {number} field @param {number | undefined} value 0 to 2^53 - 1 */
  uint(field, value) {
    if (!value) return this
    this.#tag(field, Wire.VARINT)
    this.#varint(value)
    return this
  }

  /** @param {number} field @param {bigint} value 64 bits, unsigned */
  uint64(field, value) {
    if (value === 0n) return
    this.#tag(field, Wire.VARINT)
    for (; value > 127n; value >>= 7n) this.#bytes[this.#end++] = Number(value & 127n) | 128
    this.#bytes[this.#end++] = Number(value)
  }

  /** @param {number} field @param {number} value */
  double(field, value) {
    if (value === 0) return
    this.#tag(field, Wire.FIXED64)
    this.#end = this.#bytes.writeDoubleLE(value, this.#end)
  }

  /** @param {number} field @param {boolean | undefined} value */
  bool(field, value) {
    return this.uint(field, value ? 1 : 0)
  }

  /** @param {number} field @param {string | undefined} text */
  text(field, text) {
    if (!text) return this
    this.#tag(field, Wire.LENGTH)
    const { length } = text
    this.#reserve(length * 3 + 10)
    if (length > SHORT_TEXT) {
      this.#varint(Buffer.byteLength(text))
      this.#end += this.#bytes.write(text, this.#end)
      return this
    }
    const start = this.#end + 1
    const written = this.#ascii(text, start) ? length : this.#bytes.write(text, start)
    this.#bytes[start - 1] = written
    this.#end = start + written
    return this
  }

  /** Faster than `write`; false if not ASCII. @param {string} text @param {number} at */
  #ascii(text, at) {
    const bytes = this.#bytes
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i)
      if (code > 127) return false
      bytes[at + i] = code
    }
    return true
  }

  /** @param {number} field @param {Uint8Array} bytes */
  bytes(field, bytes) {
    return bytes.length > 0 ? this.message(field, bytes) : this
  }

  /** Also writes an empty message. @param {number} field @param {Uint8Array} bytes */
  message(field, bytes) {
    const { length } = bytes
    this.#tag(field, Wire.LENGTH)
    this.#varint(length)
    this.#reserve(length)
    this.#bytes.set(bytes, this.#end)
    this.#end += length
    return this
  }

  /**
   * Begins an inner message, written even if empty.
   * @param {number} field 0: the outermost message, without a tag
   * @param {number} [size] estimated bytes, to avoid a move in `close`
   */
  open(field, size = 0) {
    if (field > 0) this.#tag(field, Wire.LENGTH)
    else this.#reserve(16)
    const room = varintSize(size)
    this.#end += room
    this.#starts[this.#depth] = this.#end
    this.#lengthSizes[this.#depth++] = room
    return this
  }

  close() {
    const start = this.#starts[--this.#depth]
    const room = this.#lengthSizes[this.#depth]
    const length = this.#end - start
    const needed = varintSize(length)
    if (needed !== room) {
      this.#reserve(needed)
      this.#bytes.copyWithin(start + needed - room, start, this.#end)
    }
    this.#end = start - room
    this.#varint(length)
    this.#end += length
    return this
  }
}
