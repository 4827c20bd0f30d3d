// A connection as the engine sees it: messages come, and in the end it is closed, once.

import { HttpWire } from './http.js'
import { CLOSED, OPEN, OPENING, Remainder } from './wire.js'

/** A message may be as long as a gateway lets it, and what is around it. */
export const MAX_MESSAGE = (1 << 20) + (1 << 16)
const LF = 10

/** What a subclass has: `opened`, `answered`, `parse`, and `send` if it is two-way. */
export class Connection extends HttpWire {
  /**
   * @param {import('./target.js').Target} target
   * @param {number} slot
   * @param {number} number
   * @param {object} params ConnectRequest
   */
  constructor(target, slot, number, params) {
    super(target)
    this.slot = slot
    this.number = number
    /** Commands that wait to be sent; at first the connect request. */
    this.outbox = JSON.stringify(target.dialer.oneWay ? params : { id: 1, connect: params })
  }

  /** Sends JSON commands, separated by line feeds. One-way transports have nobody who hears. @param {string} _text */
  send(_text) {}

  /** Closes it in an orderly way. */
  close() {
    this.end('closed')
  }

  /** Ends it as if the network had cut it. */
  reset() {
    this.end('reset', 0, true)
  }

  /** @override @param {Buffer} buffer @param {number} start @param {number} end */
  body(buffer, start, end) {
    let { rest } = this
    if (rest === null) {
      const used = this.parse(buffer, start, end)
      if (used < end) rest = new Remainder(buffer, used, end)
    } else {
      rest.append(buffer, start, end)
      const used = this.parse(rest.bytes, 0, rest.length)
      if (used === rest.length) rest = null
      else rest.drop(used)
    }
    this.rest = rest
    if (rest !== null && rest.length > MAX_MESSAGE) this.end('message too long', 0, true)
  }

  /**
   * Takes what is whole.
   * @param {Buffer} buffer
   * @param {number} at
   * @param {number} end
   * @returns {number} where that ends
   */
  parse(buffer, at, end) {
    while (at < end) {
      const stop = lineEnd(buffer, at, end)
      if (stop === end) break
      this.line(buffer, at, stop)
      at = stop + 1
    }
    return at
  }

  /** @param {Buffer} buffer @param {number} start @param {number} end */
  line(buffer, start, end) {
    if (start === end) return
    if (this.state === OPENING) {
      this.state = OPEN
      this.target.dialer.unwatch(this)
    }
    if (this.state === OPEN) this.target.dialer.listener.message(this, buffer, start, end)
  }

  /** @override */
  done() {
    this.end('closed by target')
  }

  /** @override */
  gone() {
    const { dialer } = this.target
    if (this.state === CLOSED) return
    this.state = CLOSED
    this.rest = null
    dialer.unwatch(this)
    dialer.listener.closed(this, this.code, this.reason || 'closed by target')
  }
}

/**
 * @param {Buffer} buffer
 * @param {number} from
 * @param {number} to
 * @returns {number} where the first line feed of [from, to) is, `to` if there is none
 */
export function lineEnd(buffer, from, to) {
  if (to === buffer.length) {
    const at = buffer.indexOf(LF, from)
    return at < 0 ? to : at
  }
  // A line feed behind it is where the search ends: what is further behind is long.
  const behind = buffer[to]
  buffer[to] = LF
  const at = buffer.indexOf(LF, from)
  buffer[to] = behind
  return at
}
