// A connection for the engine: it delivers messages, and closes exactly once.

import { HttpWire } from './http.js'
import { lineEnd, MAX_UNSENT, OPEN, OPENING, Remainder } from './wire.js'

/** Maximum message length of a gateway, plus framing. */
export const MAX_MESSAGE = (1 << 20) + (1 << 16)

export class Connection extends HttpWire {
  static closesSocketOnly = false

  /** @param {import('./target.js').Target} target @param {number} slot @param {number} number @param {object} params */
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

  flush() {}

  close() {
    this.end('closed')
  }

  /** Resets the TCP connection like a network fault; not possible with TLS. */
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

  /** Delivers complete messages; returns their end. @param {Buffer} buffer @param {number} at @param {number} end */
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

  done() {
    this.end('')
  }

  gone() {
    this.dialer.listener.closed(this, this.code, this.reason)
  }
}
