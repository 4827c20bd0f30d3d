// WebSocket (RFC 6455), the client's side: websocket and uni_websocket. Frames are read where they are.

import { Connection, MAX_MESSAGE } from './connection.js'
import { CLOSING, OPEN, Remainder } from './wire.js'

/** The key is not secret and need not be random (RFC 6455, 1.3: it proves that the server speaks WebSocket). */
const HEADERS =
  'Connection: Upgrade\r\nUpgrade: websocket\r\n' +
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n'

/** First bytes of frames: the last one of its message, and the opcode. */
const TEXT = 0x81
const CLOSE = 0x88
const PING = 0x89
const PONG = 0x8a
/** s that the target has to close the connection when both have said so. */
const CLOSE_TIMEOUT = 5

/**
 * @param {number} first byte
 * @param {string | Uint8Array} payload
 * @returns {Buffer} a frame, masked with a key of zeros
 */
function frame(first, payload) {
  const bytes = Buffer.from(/** @type {string} */ (payload))
  const { length } = bytes
  const size = [length >> 8, length]
  const head =
    length < 126
      ? [length | 128]
      : length < 65_536
        ? [254, ...size]
        : [255, 0, 0, 0, 0, length >> 24, length >> 16, ...size]
  return Buffer.concat([Buffer.of(first, ...head, 0, 0, 0, 0), bytes])
}

export class WebSocketConnection extends Connection {
  /** @param {ConstructorParameters<typeof Connection>} args */
  constructor(...args) {
    super(...args)
    /** @type {Remainder | null} the message whose last fragment is not there */
    this.fragments = null
  }

  /** @override */
  opened() {
    this.write(Buffer.from(this.target.head(`GET ${this.dialer.path}`, HEADERS)))
  }

  /** @override @param {number} status */
  answered(status) {
    if (status === 101) this.flush()
    else this.end(`HTTP ${status}`)
  }

  /** @override */
  flush() {
    if (this.status !== 101) return
    this.write(frame(TEXT, this.outbox))
    this.outbox = ''
  }

  /** @override */
  close() {
    if (this.status !== 101 || this.state > OPEN) return super.close()
    this.blame('closed')
    this.#leave(Uint8Array.of(1000 >> 8, 1000))
  }

  /** @param {Uint8Array} code */
  #leave(code) {
    this.write(frame(CLOSE, code))
    this.state = Math.max(this.state, CLOSING)
    this.dialer.watch(this, CLOSE_TIMEOUT)
  }

  /** @override @param {Buffer} buffer @param {number} at @param {number} end */
  parse(buffer, at, end) {
    while (this.state <= OPEN) {
      const first = buffer[at]
      let length = buffer[at + 1]
      let start = at + 2
      if (length > 125) {
        const stop = start + (length === 126 ? 2 : 8)
        for (length = 0; start < stop; start++) length = length * 256 + buffer[start]
      }
      // Or it is not a number: there is nothing.
      if (!(start + length <= end)) return at
      at = start + length
      if (first === TEXT && !this.fragments) this.#message(buffer, start, at)
      else this.#other(first, buffer, start, at)
    }
    return end
  }

  /** Lines, of which the last one has no end. @param {Buffer} buffer @param {number} start @param {number} end */
  #message(buffer, start, end) {
    this.line(buffer, super.parse(buffer, start, end), end)
  }

  /**
   * A fragment, a control frame or a binary one.
   * @param {number} first byte of the frame
   * @param {Buffer} buffer
   * @param {number} start
   * @param {number} end
   */
  #other(first, buffer, start, end) {
    const payload = buffer.subarray(start, end)
    if (first === CLOSE) {
      this.blame(
        `${payload.subarray(2)}` || 'closed by target',
        end - start < 2 ? 1005 : payload.readUInt16BE(),
      )
      this.#leave(payload.subarray(0, 2))
    } else if (first === PING) this.write(frame(PONG, payload))
    else if ((first & 127) < 3) {
      this.fragments ??= new Remainder()
      const { fragments } = this
      if (fragments.append(buffer, start, end) > MAX_MESSAGE) this.end('message too long')
      if (first < 128) return
      this.fragments = null
      this.#message(fragments.bytes, 0, fragments.length)
    } else if (first !== PONG) this.end('bad frame')
  }
}
