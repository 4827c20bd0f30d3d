// The little of RFC 6455 that a load generator needs: masked frames out, unmasked ones in.

export const OPCODE = Object.freeze({ continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 })

const FIN = 0x80
const MASKED = 0x80

/**
 * @param {number} opcode
 * @param {string | Uint8Array} payload at most 65,535 bytes
 * @returns {Buffer} a whole frame. The mask is zero: as valid as any other, and the payload need not be touched
 */
export function maskedFrame(opcode, payload) {
  const bytes = Buffer.from(payload)
  const { length } = bytes
  const head =
    length < 126 ? [FIN | opcode, MASKED | length] : [FIN | opcode, MASKED | 126, length >> 8, length & 255]
  return Buffer.concat([Buffer.from([...head, 0, 0, 0, 0]), bytes])
}

/**
 * @param {string} host
 * @param {string} path
 * @returns {string} a request for an upgrade
 */
export const upgradeRequest = (host, path) =>
  `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n'

/** Reads frame headers. What it read last stands in its fields, so that a frame costs no object. */
export class FrameReader {
  opcode = 0
  /** Where the frame's payload begins, and where the frame ends. */
  start = 0
  end = 0

  /**
   * @param {Uint8Array} bytes
   * @param {number} at where a frame begins
   * @param {number} limit where the bytes end
   * @returns {boolean} whether the frame is there as a whole
   */
  read(bytes, at, limit) {
    if (limit - at < 2) return false
    this.opcode = bytes[at] & 15
    let length = bytes[at + 1] & 127
    let start = at + 2
    if (length === 126) {
      if (limit - at < 4) return false
      length = (bytes[at + 2] << 8) | bytes[at + 3]
      start = at + 4
    } else if (length === 127) {
      if (limit - at < 10) return false
      length = 0
      for (let i = at + 2; i < at + 10; i++) length = length * 256 + bytes[i]
      start = at + 10
    }
    this.start = start
    this.end = start + length
    return this.end <= limit
  }
}
