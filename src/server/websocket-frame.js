const FIN = 0x80
const TEXT = 1
const BINARY = 2

/**
 * A whole message as one frame from server to client (RFC 6455, section 5.2), which is never masked.
 *
 * @param {string | Uint8Array} data
 * @param {boolean} binary
 * @returns {Buffer}
 */
export function encodeMessage(data, binary) {
  const text = typeof data === 'string'
  const length = text ? Buffer.byteLength(data) : data.length
  const start = length < 126 ? 2 : length < 65536 ? 4 : 10
  const frame = Buffer.allocUnsafe(start + length)
  frame[0] = FIN | (binary ? BINARY : TEXT)
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
