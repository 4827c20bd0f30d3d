import { constants, deflateRawSync } from 'node:zlib'

const FIN = 0x80
/** The message is compressed (RFC 7692, section 6). */
const RSV1 = 0x40
const TEXT = 1
const BINARY = 2
/** Bytes of the empty block after a flush, which the sender strips and the receiver appends. */
const EMPTY_BLOCK = 4

/**
 * One message as one frame from server to client (RFC 6455, section 5.2), which is never masked.
 * @param {string | Uint8Array} data
 * @param {boolean} binary
 * @returns {Buffer}
 */
export function encodeMessage(data, binary) {
  return encode(FIN | (binary ? BINARY : TEXT), data)
}

/**
 * Compressed without the context of earlier messages (RFC 7692, section 7.2.1); plain if that is not longer.
 * @param {string | Uint8Array} data
 * @param {boolean} binary
 * @param {number} level of zlib
 * @returns {Buffer}
 */
export function encodeCompressed(data, binary, level) {
  const deflated = deflateRawSync(data, { level, finishFlush: constants.Z_SYNC_FLUSH })
  const length = deflated.length - EMPTY_BLOCK
  if (length >= data.length) return encodeMessage(data, binary)
  return encode(FIN | RSV1 | (binary ? BINARY : TEXT), deflated.subarray(0, length))
}

/** @param {number} first byte of the header @param {string | Uint8Array} data */
function encode(first, data) {
  const text = typeof data === 'string'
  const length = text ? Buffer.byteLength(data) : data.length
  const start = length < 126 ? 2 : length < 65536 ? 4 : 10
  const frame = Buffer.allocUnsafe(start + length)
  frame[0] = first
  if (start === 2) {
    frame[1] = length
  } else if (start === 4) {
    frame[1] = 126
    frame.writeUInt16BE(length, 2)
  } else {
    frame[1] = 127
    frame.writeUInt32BE(Math.floor(length / 0x100000000), 2)
    frame.writeUInt32BE(length >>> 0, 6)
  }
  if (text) frame.write(data, start)
  else frame.set(data, start)
  return frame
}
