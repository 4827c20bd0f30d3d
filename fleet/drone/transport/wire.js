// A socket to the target and its unparsed input. An idle connection costs one Wire and one net.Socket: no closures, no
// timers, no Buffers. All sockets of a dialer are read into one buffer.

export const OPENING = 0
export const OPEN = 1
/** During the close handshake; nothing more is delivered. */
export const CLOSING = 2
/** The reason is final; the socket is closed or closing. */
export const CLOSED = 3

/** Response timeout of a target, s. */
export const ANSWER_TIMEOUT = 20
/** Pairs of address and port that a wire tries if they are in use. */
const MAX_TRIES = 24
/** Maximum unsent bytes; above it, the server is not reading. */
export const MAX_UNSENT = 1 << 20
const LF = 10
/** Maximum bytes that JavaScript searches faster than native code. */
const SHORT = 64

/** @import { Socket } from 'node:net' */
/** @import { Target } from './target.js' */

/** @typedef {Socket & {wire: Wire}} WireSocket */

export class Wire {
  /** @param {Target} target */
  constructor(target) {
    this.target = target
    this.dialer = target.dialer
    this.state = OPENING
    /** @type {WireSocket | null} */
    this.socket = null
    this.pair = -1
    this.tries = 0
    /** Dialer tick that calls `expire`, if watched. */
    this.deadline = 0
    this.code = 0
    this.reason = ''
  }

  open() {
    const { target } = this
    this.reason = ''
    this.dialer.watch(this, ANSWER_TIMEOUT)
    this.pair = target.sources.take(this.tries)
    const socket = target.connect(this.pair)
    this.socket = socket
    socket.wire = this
    socket.on('error', onError)
    socket.on('close', onClose)
    socket.once(target.openEvent, onOpened)
    if (this.pair < 0) this.end('no free source port')
  }

  /** @param {Uint8Array} data */
  write(data) {
    const { socket } = this
    if (!socket || this.state === CLOSED) return
    this.dialer.bytes.bytesOut += data.length
    socket.write(data)
    if (socket.writableLength > MAX_UNSENT) this.end('target does not read')
  }

  /** Ends it in any state. @param {string} reason '': the target closed it @param {number} [code] */
  end(reason, code) {
    this.setReason(reason, code)
    this.state = CLOSED
    this.socket?.destroy()
  }

  /** Sets the reason of the end; keeps the first one. @param {string} reason @param {number} [code] */
  setReason(reason, code = 0) {
    if (this.reason !== '') return
    this.reason = reason
    this.code = code
  }

  opened() {}

  /** @param {Buffer} _buffer @param {number} _start @param {number} _end */
  receive(_buffer, _start, _end) {}

  get unfinished() {
    return false
  }

  shouldReopen() {
    return this.tries > 0
  }

  gone() {}

  expire() {
    this.end('timeout')
  }
}

/** @this {WireSocket} @param {NodeJS.ErrnoException & {address?: string}} error */
function onError({ code, syscall, address, message }) {
  const { wire } = this
  // Another process may use the pair, or its TIME_WAIT is not over.
  const taken = code === 'EADDRINUSE' || (code === 'EADDRNOTAVAIL' && syscall === 'connect')
  if (taken && wire.target.sources.first && ++wire.tries < MAX_TRIES) return
  wire.tries = 0
  wire.setReason(syscall === 'bind' ? `${code} ${address}` : (code ?? message))
}

/** @this {WireSocket} */
function onClose() {
  const { wire } = this
  wire.target.sources.release(wire.pair)
  if (wire.state < CLOSING && wire.shouldReopen()) return wire.open()
  wire.state = CLOSED
  wire.dialer.unwatch(wire)
  wire.reason ||= wire.unfinished ? 'incomplete response' : 'closed by target'
  wire.gone()
}

/** @this {WireSocket} */
function onOpened() {
  const { wire } = this
  wire.tries = 0
  wire.opened()
}

/** All sockets' `onread`. @this {WireSocket} @param {number} length @param {Buffer} buffer */
export function onRead(length, buffer) {
  const { wire } = this
  wire.dialer.bytes.bytesIn += length
  wire.receive(buffer, 0, length)
  return true
}

/** Bytes of an incomplete message. Grows by doubling, so that many small pieces cost as much as a large one. */
export class Remainder {
  // Not from Node's pool, which a piece would keep whole.
  bytes = Buffer.allocUnsafeSlow(0)
  length = 0

  /** @param {Buffer} from @param {number} start @param {number} end @returns {number} length of the whole */
  append(from, start, end) {
    const length = this.length + end - start
    if (length > this.bytes.length) {
      const bytes = Buffer.allocUnsafeSlow(Math.max(length, 2 * this.bytes.length))
      this.bytes.copy(bytes)
      this.bytes = bytes
    }
    from.copy(this.bytes, this.length, start, end)
    return (this.length = length)
  }

  /** @param {number} count from the front */
  drop(count) {
    this.bytes.copyWithin(0, count, this.length)
    this.length -= count
  }
}

/** Place of a line feed in [from, to), else `to`. @param {Buffer} buffer @param {number} from @param {number} to */
export function lineEnd(buffer, from, to) {
  if (to - from <= SHORT) {
    while (from < to && buffer[from] !== LF) from++
    return from
  }
  // A temporary line feed at `to` (if inside the buffer) bounds the search.
  const behind = buffer[to]
  buffer[to] = LF
  const at = buffer.indexOf(LF, from)
  buffer[to] = behind
  return at < 0 ? to : at
}
