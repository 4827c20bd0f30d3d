// A socket to the target, and what is left of what it received. An idle wire is what an idle connection costs: one object, one
// net.Socket, no closures, no timers, no Buffers. All sockets of a dialer are read into one buffer.

/** How far it is: the order matters. */
export const OPENING = 0
export const OPEN = 1
/** Both sides are told; what still comes is not delivered. */
export const CLOSING = 2
/** It is decided how it ended; the socket is being closed. */
export const OVER = 3
export const CLOSED = 4

/** Pairs of address and port that one wire tries, when others have taken them. */
const MAX_TRIES = 24
/** What may wait to be sent, bytes: a server that does not read for so long is left. */
const MAX_UNSENT = 1 << 20

/**
 * @typedef {import('./target.js').Target} Target
 * @typedef {import('node:net').Socket & {wire: Wire}} WireSocket
 */

/** What a subclass has: `opened`, `receive` and `gone`. */
export class Wire {
  /** @param {Target} target */
  constructor(target) {
    this.target = target
    this.state = OPENING
    /** @type {WireSocket | null} */
    this.socket = null
    /** Index of the source address and port; -1: the kernel's choice. */
    this.pair = -1
    this.tries = 0
    /** Tick of the dialer at which `expire` is called, if it is watched. */
    this.deadline = 0
    /** Of the close or disconnect; 0: there was none. */
    this.code = 0
    this.reason = ''
  }

  /** Connects, as soon as the target's address is known. */
  open() {
    const { target } = this
    if (this.state >= OVER) return
    if (target.addresses.length === 0) return target.resolve(this)
    const { sources } = target
    if (sources !== null && (this.pair = sources.take(this.tries)) < 0)
      return this.end('no source port is left')
    const socket = target.connect(this.pair, this.tries)
    this.socket = socket
    socket.wire = this
    socket.on('error', onError)
    socket.on('close', onClose)
    socket.on(target.opened, onOpened)
  }

  /** @param {string | Uint8Array} data strings are ASCII */
  write(data) {
    const { socket } = this
    if (socket === null || this.state >= OVER) return
    this.target.dialer.bytesOut += data.length
    socket.write(data, /** @type {any} */ ('latin1'))
    if (socket.writableLength > MAX_UNSENT) this.end('target does not read', 0, true)
  }

  /**
   * Ends it, whatever state it is in. What is said first, holds.
   * @param {string} reason
   * @param {number} [code]
   * @param {boolean} [reset] as if the network had cut it
   */
  end(reason, code = 0, reset = false) {
    if (this.state >= OVER) return
    this.state = OVER
    this.blame(reason, code)
    const { socket } = this
    if (socket === null) process.nextTick(tell, this)
    else if (reset && !socket.connecting && !this.target.secure) socket.resetAndDestroy()
    else socket.destroy()
  }

  /** @param {string} reason @param {number} [code] */
  blame(reason, code = 0) {
    if (this.reason !== '') return
    this.reason = reason
    this.code = code
  }

  /** Connected: the request can be made. */
  opened() {}

  /** @param {Buffer} _buffer @param {number} _start @param {number} _end */
  receive(_buffer, _start, _end) {}

  /** The socket is closed. */
  gone() {}

  /** The deadline has passed. */
  expire() {
    this.end('timeout')
  }
}

/** @param {Wire} wire */
function tell(wire) {
  wire.gone()
}

/** @this {WireSocket} @param {NodeJS.ErrnoException & {address?: string}} error */
function onError({ code, syscall, address, message }) {
  const { wire } = this
  const { sources } = wire.target
  // Others on this machine may have the pair, or it has not rested for long enough.
  const taken = code === 'EADDRINUSE' || (code === 'EADDRNOTAVAIL' && syscall === 'connect')
  if (taken && sources?.ports && wire.state < CLOSING && ++wire.tries < MAX_TRIES) return
  wire.tries = 0
  wire.blame(syscall === 'bind' ? `${code} ${address}` : (code ?? message))
}

/** @this {WireSocket} */
function onClose() {
  const { wire } = this
  wire.socket = null
  wire.target.sources?.release(wire.pair)
  wire.pair = -1
  if (wire.tries > 0 && wire.state < CLOSING) wire.open()
  else wire.gone()
}

/** @this {WireSocket} */
function onOpened() {
  const { wire } = this
  this.removeListener(wire.target.opened, onOpened)
  wire.tries = 0
  wire.opened()
}

/**
 * All sockets' `onread`.
 * @this {WireSocket}
 * @param {number} length
 * @param {Buffer} buffer
 */
export function onRead(length, buffer) {
  const { wire } = this
  wire.target.dialer.bytesIn += length
  wire.receive(buffer, 0, length)
  return true
}

/** Bytes that are not whole yet. Grows by doubling, so that many small pieces cost no more than a large one. */
export class Remainder {
  /** @param {Buffer} from @param {number} start @param {number} end */
  constructor(from, start, end) {
    // Not from Node's pool, which a piece would keep whole.
    this.bytes = Buffer.allocUnsafeSlow(end - start)
    this.length = from.copy(this.bytes, 0, start, end)
  }

  /** @param {Buffer} from @param {number} start @param {number} end */
  append(from, start, end) {
    const length = this.length + end - start
    if (length > this.bytes.length) {
      const bytes = Buffer.allocUnsafeSlow(Math.max(length, 2 * this.bytes.length))
      this.bytes.copy(bytes, 0, 0, this.length)
      this.bytes = bytes
    }
    from.copy(this.bytes, this.length, start, end)
    this.length = length
  }

  /** @param {number} count from the front */
  drop(count) {
    this.bytes.copyWithin(0, count, this.length)
    this.length -= count
  }
}
