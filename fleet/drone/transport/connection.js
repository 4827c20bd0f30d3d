// A connection as the engine sees it: it delivers messages, and is closed exactly once.

import { HttpWire } from './http.js'
import { lineEnd, MAX_UNSENT, OPEN, OPENING, Remainder } from './wire.js'

/** Maximum message length of a gateway, plus framing. */
export const MAX_MESSAGE = (1 << 20) + (1 << 16)

/** Subclasses override `opened`, `answered`, `parse` and `flush`. */
export class Connection extends HttpWire {
  /** Whether `close` only closes the socket. */
  static closesSilently = false

  /**
   * @param {import('./target.js').Target} target @param {number} slot @param {number} number
   * @param {object} params ConnectRequest
   */
  constructor(target, slot, number, params) {
    super(target)
    this.slot = slot
    this.number = number
    /** Commands to send; at first the connect request. */
    this.outbox = JSON.stringify(this.dialer.oneWay ? params : { id: 1, connect: params })
    /** The incomplete message. @type {Remainder | null} */
    this.rest = null
  }

  /** Sends JSON commands, separated by line feeds; one-way transports ignore them. @param {string} text */
  send(text) {
    if (this.dialer.oneWay || this.state > OPEN) return
    this.outbox += this.outbox === '' ? text : `\n${text}`
    if (this.outbox.length > MAX_UNSENT) this.end('target does not read')
    else this.flush()
  }

  /** Sends the outbox when the connection can. */
  flush() {}

  close() {
    this.end('closed')
  }

  /** Resets the TCP connection as a network fault would; TLS sockets cannot. */
  reset() {
    if (!this.target.secure) this.socket?.resetAndDestroy()
    this.end('reset')
  }

  /** @override @param {Buffer} buffer @param {number} start @param {number} end */
  body(buffer, start, end) {
    let { rest } = this
    if (rest) {
      rest.append(buffer, start, end)
      buffer = rest.bytes
      start = 0
      end = rest.length
    }
    start = this.parse(buffer, start, end)
    if (start === end) rest = null
    else if (rest) rest.drop(start)
    else (rest = new Remainder()).append(buffer, start, end)
    this.rest = rest
    if (rest && rest.length > MAX_MESSAGE) this.end('message too long')
  }

  /**
   * Delivers complete messages. @param {Buffer} buffer @param {number} at @param {number} end
   * @returns {number} end of the last one
   */
  parse(buffer, at, end) {
    for (;;) {
      const stop = lineEnd(buffer, at, end)
      if (stop === end) return at
      this.line(buffer, at, stop)
      at = stop + 1
    }
  }

  /** @param {Buffer} buffer @param {number} start @param {number} end */
  line(buffer, start, end) {
    if (start === end) return
    if (this.state === OPENING) {
      this.state = OPEN
      this.dialer.unwatch(this)
    }
    if (this.state === OPEN) this.dialer.listener.message(this, buffer, start, end)
  }

  /** @override */
  done() {
    this.end('')
  }

  /** @override */
  gone() {
    this.dialer.listener.closed(this, this.code, this.reason)
  }
}
