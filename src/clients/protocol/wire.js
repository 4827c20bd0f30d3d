// The wire format of Protobuf: tagged fields, numbers as base-128 varints, everything else after its length. Neither
// class knows messages.
//
// Why not protobufjs: hostile clients. Its reader cuts a string that runs past the end instead of refusing it, does not
// hold an inner message to its length, and loses its position after a varint of 6 to 9 bytes in a 32-bit field; its
// writer is more than twice as slow for a publication, because it creates an object for each value.

import { disconnects } from '../../base/errors.js'

/** Encoding of a value, in the lowest three bits of its tag. */
export const Wire = Object.freeze({ VARINT: 0, FIXED64: 1, LENGTH: 2, GROUP: 3, GROUP_END: 4, FIXED32: 5 })

const TWO_32 = 2 ** 32

/** Reads fields from untrusted bytes: each method throws disconnects.badRequest on malformed ones. */
export class WireReader {
  #bytes
  #at = 0
  /** End of the current message. */
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

  /** @returns {number} tag of a field: its number from 1, shifted by 3, and its Wire type */
  tag() {
    const tag = this.uint32()
    if (tag >>> 3 === 0) throw disconnects.badRequest
    return tag
  }

  /** @returns {number} the lowest 32 bits of a varint, unsigned */
  uint32() {
    let value = 0
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = this.#byte()
      if (shift < 32) value |= (byte & 127) << shift
      if (byte < 128) return value >>> 0
    }
    throw disconnects.badRequest
  }

  /** @param {boolean} signed @returns {number} all 64 bits of a varint; exact up to 2^53 */
  #long(signed) {
    let low = 0
    let high = 0
    for (let i = 0; i < 10; i++) {
      const byte = this.#byte()
      const bits = byte & 127
      if (i < 5) low |= bits << (7 * i)
      if (i === 4) high = bits >>> 4
      else if (i > 4) high |= bits << (7 * i - 32)
      if (byte < 128) return (signed ? high : high >>> 0) * TWO_32 + (low >>> 0)
    }
    throw disconnects.badRequest
  }

  uint64() {
    return this.#long(false)
  }

  int64() {
    return this.#long(true)
  }

  /** @returns {bigint} all 64 bits of a varint, unsigned */
  bigUint64() {
    let value = 0n
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.#byte()
      value |= BigInt(byte & 127) << shift
      if (byte < 128) return BigInt.asUintN(64, value)
    }
    throw disconnects.badRequest
  }

  /** @returns {number} end of the length-delimited value that begins here; #at becomes its first byte */
  #valueEnd() {
    const length = this.uint32()
    if (length > this.#end - this.#at) throw disconnects.badRequest
    return this.#at + length
  }

  /** @returns {Buffer} a view */
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

  /** Enters the message that begins here: `done` is true at its end. @returns {number} for `leave` */
  enter() {
    const outer = this.#end
    this.#end = this.#valueEnd()
    return outer
  }

  /** @param {number} outer result of `enter` */
  leave(outer) {
    this.#end = outer
  }

  /** @param {number} wire type of the skipped value */
  skip(wire) {
    // Obsolete groups may be nested; counting them avoids a stack overflow.
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

/** A larger buffer is released. */
const KEEP_SIZE = 1024 * 1024

/** Texts up to this length have at most 127 bytes of UTF-8, so their length fits one byte. */
const SHORT_TEXT = 42

/** @param {number} value @returns {number} bytes of its varint */
function varintSize(value) {
  let size = 1
  for (; value > 127; size++) value = Math.floor(value / 128)
  return size
}

/** Writes fields into its own reused memory. Zero values are omitted, as in proto3. */
export class WireWriter {
  #bytes
  #size
  #end = 0
  /** The open messages, outermost first: start of their bytes, and bytes reserved for their lengths. */
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
  }

  /** @returns {Uint8Array} the written bytes; valid until the next `clear` */
  view() {
    return this.#bytes.subarray(0, this.#end)
  }

  /** Closes all open messages. @returns {Buffer} a copy of the written bytes */
  finish() {
    while (this.#depth > 0) this.close()
    const copy = Buffer.from(this.view())
    if (this.#bytes.length > KEEP_SIZE) this.#bytes = Buffer.allocUnsafeSlow(this.#size)
    return copy
  }

  /** @param {number} size bytes that must fit after the end */
  #reserve(size) {
    const needed = this.#end + size
    if (needed <= this.#bytes.length) return
    const grown = Buffer.allocUnsafeSlow(needed * 2)
    this.#bytes.copy(grown, 0, 0, this.#end)
    this.#bytes = grown
  }

  /** @param {number} value integer from 0 to 2^53 - 1; the bytes are reserved */
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

  /** @param {number} field @param {number | undefined} value integer from 0 to 2^53 - 1 */
  uint(field, value) {
    if (!value) return
    this.#tag(field, Wire.VARINT)
    this.#varint(value)
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
    if (value) this.uint(field, 1)
  }

  /** @param {number} field @param {string | undefined} text */
  text(field, text) {
    if (!text) return
    this.#tag(field, Wire.LENGTH)
    const { length } = text
    this.#reserve(length * 3 + 10)
    if (length > SHORT_TEXT) {
      this.#varint(Buffer.byteLength(text))
      this.#end += this.#bytes.write(text, this.#end)
      return
    }
    const start = this.#end + 1
    const written = this.#ascii(text, start) ? length : this.#bytes.write(text, start)
    this.#bytes[start - 1] = written
    this.#end = start + written
  }

  /**
   * Faster than `write` for a short text.
   * @param {string} text @param {number} at @returns {boolean} false: not ASCII, discard
   */
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
    if (bytes.length > 0) this.message(field, bytes)
  }

  /** @param {number} field @param {Uint8Array} bytes a whole message; written even if empty */
  message(field, bytes) {
    const { length } = bytes
    this.#tag(field, Wire.LENGTH)
    this.#varint(length)
    this.#reserve(length)
    this.#bytes.set(bytes, this.#end)
    this.#end += length
  }

  /**
   * Begins an inner message, which is written even if it stays empty.
   * @param {number} field 0: only a length, no tag; the outermost message of a frame
   * @param {number} [size] estimated bytes: a good estimate avoids moving them in `close`
   */
  open(field, size = 0) {
    if (field > 0) this.#tag(field, Wire.LENGTH)
    else this.#reserve(16)
    const room = varintSize(size)
    this.#end += room
    this.#starts[this.#depth] = this.#end
    this.#lengthSizes[this.#depth++] = room
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
  }
}
