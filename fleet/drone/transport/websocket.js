// WebSocket (RFC 6455), the client's side: websocket and uni_websocket. Frames are read where they are.

import { Connection, lineEnd, MAX_MESSAGE } from './connection.js'
import { RAW } from './http.js'
import { CLOSING, OPEN, OVER, Remainder } from './wire.js'

/** The key is not secret and need not be random (RFC 6455, 1.3: it proves that the server speaks WebSocket). */
const KEY = 'dGhlIHNhbXBsZSBub25jZQ=='
const ACCEPT = 's3pPLMBiTxaQ9kYGzzhZRbK+xOo='
const HEADERS =
  `Connection: Upgrade\r\nUpgrade: websocket\r\n` +
  `Sec-WebSocket-Key: ${KEY}\r\nSec-WebSocket-Version: 13\r\n`

const TEXT = 1
const CLOSE = 8
const PING = 9
/** s that the target has to close the connection when both have said so. */
const CLOSE_TIMEOUT = 5

/**
 * @param {number} opcode
 * @param {string | Uint8Array} payload
 * @returns {Buffer} a frame, masked with a key of zeros
 */
function frame(opcode, payload) {
  const length = Buffer.byteLength(payload)
  const head = length < 126 ? 6 : length < 65_536 ? 8 : 14
  const bytes = Buffer.allocUnsafe(head + length)
  bytes.fill(0, 0, head)
  bytes[0] = 0x80 | opcode
  bytes[1] = 0x80 | (length < 126 ? length : head === 8 ? 126 : 127)
  if (head === 8) bytes.writeUInt16BE(length, 2)
  else if (head === 14) bytes.writeUInt32BE(length, 6)
  if (typeof payload === 'string') bytes.write(payload, head)
  else bytes.set(payload, head)
  return bytes
}

const PONG_COMMAND = frame(TEXT, '{}')

export class WebSocketConnection extends Connection {
  /** @param {ConstructorParameters<typeof Connection>} args */
  constructor(...args) {
    super(...args)
    /** @type {Remainder | null} the message whose last fragment is not there */
    this.fragments = null
  }

  /** @override */
  opened() {
    this.write(this.target.head(`GET ${this.target.dialer.path}`, HEADERS))
  }

  /** @override @param {number} status @param {string} head */
  answered(status, head) {
    if (status !== 101) return this.end(`HTTP ${status}`)
    if (!head.includes(ACCEPT)) return this.end('no WebSocket')
    this.write(frame(TEXT, this.outbox))
    this.outbox = ''
  }

  /** @override @param {string} text */
  send(text) {
    if (this.target.dialer.oneWay || this.state > OPEN) return
    if (this.outbox !== '') this.outbox += `\n${text}`
    else this.write(text === '{}' ? PONG_COMMAND : frame(TEXT, text))
  }

  /** @override */
  close() {
    if (this.phase !== RAW) return super.close()
    this.blame('closed')
    this.#close(1000)
  }

  /** @param {number} code */
  #close(code) {
    if (this.state > OPEN) return
    this.write(frame(CLOSE, code === 0 ? '' : Uint8Array.of(code >> 8, code & 255)))
    this.state = CLOSING
    this.target.dialer.watch(this, CLOSE_TIMEOUT)
  }

  /** @override @param {Buffer} buffer @param {number} at @param {number} end */
  parse(buffer, at, end) {
    while (end - at >= 2 && this.state < OVER) {
      let length = buffer[at + 1]
      const head = length === 126 ? 4 : length === 127 ? 10 : 2
      if (end - at < head) break
      if (head === 4) length = buffer.readUInt16BE(at + 2)
      else if (head === 10) length = buffer.readUInt32BE(at + 2) * 2 ** 32 + buffer.readUInt32BE(at + 6)
      if (buffer[at + 1] > 127 || buffer[at] & 0x70) this.end('bad frame')
      else if (length > MAX_MESSAGE) this.end('message too long', 0, true)
      else if (at + head + length > end) break
      else {
        const start = at + head
        const first = buffer[at]
        at = start + length
        if (first === (0x80 | TEXT) && this.fragments === null) this.#message(buffer, start, at)
        else this.#other(first, buffer, start, at)
      }
    }
    return this.state < OVER ? at : end
  }

  /** @param {Buffer} buffer @param {number} start @param {number} end */
  #message(buffer, start, end) {
    while (start < end && this.state <= OPEN) {
      const stop = lineEnd(buffer, start, end)
      this.line(buffer, start, stop)
      start = stop + 1
    }
  }

  /**
   * A fragment, a control frame or a binary one.
   * @param {number} first byte of the frame
   * @param {Buffer} buffer
   * @param {number} start
   * @param {number} end
   */
  #other(first, buffer, start, end) {
    const opcode = first & 15
    const last = first > 127
    const { fragments } = this
    if (opcode > 7) {
      if (!last || end - start > 125 || opcode > 10 || (opcode === CLOSE && end - start === 1))
        this.end('bad frame')
      else if (opcode === CLOSE) this.#closed(buffer, start, end)
      else if (opcode === PING && this.state < CLOSING) this.write(frame(10, buffer.subarray(start, end)))
    } else if (opcode > 2 || (opcode === 0) === (fragments === null)) this.end('bad frame')
    else if (fragments === null) {
      if (last) this.#message(buffer, start, end)
      else this.fragments = new Remainder(buffer, start, end)
    } else {
      fragments.append(buffer, start, end)
      if (fragments.length > MAX_MESSAGE) this.end('message too long', 0, true)
      if (!last) return
      this.fragments = null
      this.#message(fragments.bytes, 0, fragments.length)
    }
  }

  /** @param {Buffer} buffer @param {number} start @param {number} end */
  #closed(buffer, start, end) {
    const code = end > start ? buffer.readUInt16BE(start) : 0
    this.blame(buffer.toString('utf8', start + 2, end) || 'closed by target', code || 1005)
    this.#close(code)
  }
}
