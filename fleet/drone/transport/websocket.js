// WebSocket (RFC 6455), client side: websocket and uni_websocket. Frames are read in place.

import { isUtf8 } from 'node:buffer'
import { createHash, randomBytes } from 'node:crypto'
import { Connection, MAX_MESSAGE } from './connection.js'
import { field } from './http.js'
import { CLOSING, OPEN, Remainder } from './wire.js'

/** Proves that the server speaks WebSocket (1.3). One key for all connections saves a million hashes. */
export const KEY = randomBytes(16).toString('base64')
const ACCEPT = createHash('sha1').update(`${KEY}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
const HEADERS =
  'Connection: Upgrade\r\nUpgrade: websocket\r\n' +
  `Sec-WebSocket-Key: ${KEY}\r\nSec-WebSocket-Version: 13\r\n`

/** Opcodes; control frames from 8 on. */
const CONTINUATION = 0
export const TEXT = 1
export const BINARY = 2
const CLOSE = 8
const PING = 9
const PONG = 10
/** First byte of a frame: last frame of its message; reserved bits, which need a negotiated extension. */
const FIN = 0x80
const RESERVED = 0x70
const MASKED = 0x80
const MAX_CONTROL = 125

/** Close codes (7.4.1). */
const NORMAL = 1000
const PROTOCOL_ERROR = 1002
const NO_CODE = 1005
const NOT_UTF8 = 1007
const TOO_BIG = 1009
/** Timeout for the target's close after both close frames, s. */
const CLOSE_TIMEOUT = 5

/** A zero mask does not change the payload. @param {number} opcode @param {string | Uint8Array} payload */
export function frame(opcode, payload) {
  const length = Buffer.byteLength(payload)
  const head = length <= MAX_CONTROL ? 6 : length < 65_536 ? 8 : 14
  const bytes = Buffer.allocUnsafe(head + length)
  bytes.fill(0, 0, head)
  bytes[0] = FIN | opcode
  bytes[1] = MASKED | (head === 6 ? length : head === 8 ? 126 : 127)
  if (head === 8) bytes.writeUInt16BE(length, 2)
  else if (head === 14) bytes.writeUInt32BE(length, 6)
  if (typeof payload === 'string') bytes.write(payload, head)
  else bytes.set(payload, head)
  return bytes
}

const PONG_COMMAND = frame(TEXT, '{}')

/** @param {number} code @returns {boolean} valid in a close frame (7.4.2) */
const isCloseCode = code =>
  (code >= 1000 && code <= 1014 && ![1004, 1005, 1006].includes(code)) || (code >= 3000 && code <= 4999)

/** @param {string} head @returns {string} the fault of the handshake response (4.1); '': none */
function handshakeFault(head) {
  if (field(head, 'upgrade').toLowerCase() !== 'websocket') return 'not a WebSocket: wrong Upgrade'
  if (!/(?:^|,)\s*upgrade\s*(?:,|$)/i.test(field(head, 'connection')))
    return 'not a WebSocket: wrong Connection'
  if (field(head, 'sec-websocket-accept') !== ACCEPT) return 'not a WebSocket: wrong Sec-WebSocket-Accept'
  if (field(head, 'sec-websocket-extensions')) return 'WebSocket extension that was not requested'
  if (field(head, 'sec-websocket-protocol')) return 'WebSocket subprotocol that was not requested'
  return ''
}

export class WebSocketConnection extends Connection {
  /** @param {ConstructorParameters<typeof Connection>} args */
  constructor(...args) {
    super(...args)
    /** The incomplete fragmented message. @type {Remainder | null} */
    this.fragments = null
    this.isText = false
  }

  get path() {
    return this.dialer.path
  }

  opened() {
    this.write(Buffer.from(this.target.head(`GET ${this.path}`, HEADERS)))
  }

  /** @override @param {number} status @param {string} head */
  answered(status, head) {
    if (status !== 101) return this.end(`HTTP ${status}`)
    const fault = handshakeFault(head)
    if (fault) this.end(fault)
    else this.flush()
  }

  flush() {
    if (this.status !== 101) return
    this.write(this.outbox === '{}' ? PONG_COMMAND : frame(TEXT, this.outbox))
    this.outbox = ''
  }

  close() {
    if (this.status !== 101 || this.state > OPEN) return super.close()
    this.setReason('closed')
    this.#leave(NORMAL)
  }

  /** Starts the close handshake. @param {number} code */
  #leave(code) {
    this.#sayClose(code)
    this.state = Math.max(this.state, CLOSING)
    this.dialer.watch(this, CLOSE_TIMEOUT)
  }

  /** @param {number} code NO_CODE: none */
  #sayClose(code) {
    this.write(frame(CLOSE, code === NO_CODE ? '' : Uint8Array.of(code >> 8, code & 255)))
  }

  /** Closes after a protocol error of the target. @param {string} reason @param {number} [code] */
  #refuse(reason, code = PROTOCOL_ERROR) {
    this.#sayClose(code)
    this.end(reason)
  }

  /** @override @param {Buffer} buffer @param {number} at @param {number} end */
  parse(buffer, at, end) {
    while (end - at >= 2 && this.state <= OPEN) {
      let length = buffer[at + 1]
      let start = at + 2
      if (length === 126) start += 2
      else if (length === 127) start += 8
      if (start > end) return at
      if (length === 126) length = buffer.readUInt16BE(at + 2)
      else if (length === 127) length = buffer.readUInt32BE(at + 2) * 2 ** 32 + buffer.readUInt32BE(at + 6)
      const fault = this.#headFault(buffer[at], buffer[at + 1])
      if (fault) this.#refuse(fault)
      else if (length > MAX_MESSAGE) this.#refuse('message too long', TOO_BIG)
      else if (start + length > end) return at
      else {
        const first = buffer[at]
        at = start + length
        if (first === (FIN | TEXT)) this.#text(buffer, start, at)
        else if (first & 8) this.#control(first & 15, buffer, start, at)
        else this.#fragment(first, buffer, start, at)
      }
    }
    return this.state <= OPEN ? at : end
  }

  /** @param {number} first byte of a frame @param {number} second @returns {string} violated rule (5.1 to 5.5) or '' */
  #headFault(first, second) {
    const opcode = first & 15
    if (first & RESERVED) return 'frame with reserved bits'
    if (second & MASKED) return 'masked frame'
    if (opcode > PONG || (opcode > BINARY && opcode < CLOSE)) return 'frame with a reserved opcode'
    if (opcode >= CLOSE) {
      if (!(first & FIN)) return 'fragmented control frame'
      return second > MAX_CONTROL ? 'control frame too long' : ''
    }
    if (opcode === CONTINUATION) return this.fragments ? '' : 'continuation without a message'
    return this.fragments ? 'message within a fragmented one' : ''
  }

  /** @param {Buffer} buffer @param {number} start @param {number} end of a text */
  #text(buffer, start, end) {
    if (isUtf8(buffer.subarray(start, end))) this.message(buffer, start, end)
    else this.#refuse('text is not UTF-8', NOT_UTF8)
  }

  /** Lines of a message; the last has no line feed. @param {Buffer} buffer @param {number} start @param {number} end */
  message(buffer, start, end) {
    this.line(buffer, super.parse(buffer, start, end), end)
  }

  /** @param {number} first byte of the frame @param {Buffer} buffer @param {number} start @param {number} end */
  #fragment(first, buffer, start, end) {
    if ((first & 15) !== CONTINUATION) {
      this.fragments = new Remainder()
      this.isText = (first & 15) === TEXT
    }
    const fragments = /** @type {Remainder} */ (this.fragments)
    if (fragments.append(buffer, start, end) > MAX_MESSAGE) return this.#refuse('message too long', TOO_BIG)
    if (!(first & FIN)) return
    this.fragments = null
    if (this.isText) this.#text(fragments.bytes, 0, fragments.length)
    else this.message(fragments.bytes, 0, fragments.length)
  }

  /** @param {number} opcode @param {Buffer} buffer @param {number} start @param {number} end */
  #control(opcode, buffer, start, end) {
    const payload = buffer.subarray(start, end)
    if (opcode === PING) this.write(frame(PONG, payload))
    if (opcode !== CLOSE) return
    if (payload.length === 1) return this.#refuse('close frame of one byte')
    const code = payload.length === 0 ? NO_CODE : payload.readUInt16BE()
    if (payload.length > 0 && !isCloseCode(code)) return this.#refuse('close frame with a reserved code')
    const reason = payload.subarray(2)
    if (!isUtf8(reason)) return this.#refuse('close reason is not UTF-8', NOT_UTF8)
    this.setReason(`${reason}` || 'closed by target', code)
    this.#leave(code)
  }
}
