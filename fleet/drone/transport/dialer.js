// Opens connections to the targets, over any transport, and tells one listener what they receive.

import { parseAddresses, Sources } from './addresses.js'
import { LongPollConnection, SseConnection, StreamConnection } from './stream.js'
import { Target } from './target.js'
import { WebSocketConnection } from './websocket.js'

const READ_SIZE = 65_536

/** @type {Map<string, typeof WebSocketConnection | typeof StreamConnection>} */
const CONNECTIONS = new Map(
  /** @type {any} */ ([
    ['websocket', WebSocketConnection],
    ['http_stream', StreamConnection],
    ['sse', SseConnection],
    ['long_poll', LongPollConnection],
  ]),
)

/** @type {string[]} */
const TRANSPORTS = [...CONNECTIONS.keys(), 'uni_websocket', 'uni_http_stream', 'uni_sse']

/**
 * @typedef {import('./connection.js').Connection} Connection
 * @typedef {import('./wire.js').Wire} Wire
 * @typedef {object} Listener methods are called synchronously, though never within `dial`
 * @property {(connection: Connection, buffer: Buffer, start: number, end: number) => void} message one whole JSON
 *   message (reply, push, or `{}`, a ping) in buffer[start, end), which is there during the call only
 * @property {(connection: Connection, code: number, reason: string) => void} closed exactly once for each `dial`: the
 *   code of the close or disconnect, or 0, and a short reason: `no pong`, `ECONNREFUSED`, `HTTP 503`, `timeout`,
 *   `closed` (here), `reset` (here)
 * @typedef {object} DialerOptions
 * @property {string[]} targets base URLs
 * @property {string[]} allow `host` or `host:port`; no other target is ever connected to
 * @property {import('../../schema.js').Transport} transport
 * @property {string[]} addresses ranges of local addresses, `127.0.1.1-127.0.1.50`; none: the kernel's choice
 * @property {Record<string, any>} [transports] classes of more transports, by name
 * @property {string} ports range of source ports on each of them, `1024-65535`; '': the kernel's choice
 */

export class Dialer {
  /** Into which all sockets are read; what is not whole is copied out of it at once. */
  buffer = Buffer.allocUnsafeSlow(READ_SIZE)
  /** Seconds that something was watched. */
  tick = 0
  #targets
  #Connection
  /** @type {Set<Wire>} those that must not stay as they are for long */
  #watched = new Set()
  /** @type {NodeJS.Timeout | undefined} */
  #timer

  /**
   * @param {DialerOptions} options @param {Listener} listener
   * @param {{bytesIn: number, bytesOut: number}} bytes to which those of the application's layer are added
   * @throws {Error} one line: a target that is not allowed, a range that cannot be read
   */
  constructor(
    { targets, allow, transport, addresses, ports, transports = {} },
    listener,
    bytes = { bytesIn: 0, bytesOut: 0 },
  ) {
    this.listener = listener
    this.bytes = bytes
    this.oneWay = transport.startsWith('uni_')
    this.path = `/connection/${transport.replace('long_', '')}`
    const Connection = Object.hasOwn(transports, transport)
      ? transports[transport]
      : TRANSPORTS.includes(transport) && CONNECTIONS.get(transport.replace('uni_', ''))
    if (!Connection)
      throw new Error(`transport "${transport}" is not known; there are ${TRANSPORTS.join(', ')}`)
    if (targets.length === 0) throw new Error('targets is empty: at least one is needed')
    this.#Connection = Connection
    const from = parseAddresses(addresses)
    this.#targets = targets.map(url => {
      const target = new Target(this, url, new Sources(from, ports))
      if (!allow.some(entry => target.names.includes(entry.toLowerCase())))
        throw new Error(`target ${url} is not allowed; allowed: ${allow.join(', ') || 'none'}`)
      return target
    })
  }

  /**
   * Opens a connection, at once.
   * @param {number} slot for the listener
   * @param {number} number of the connection: it goes to target `number` mod targets
   * @param {object} params ConnectRequest
   * @returns {Connection}
   */
  dial(slot, number, params) {
    const target = this.#targets[number % this.#targets.length]
    const connection = new this.#Connection(target, slot, number, params)
    target.sources.begin(number)
    connection.open()
    return connection
  }

  /**
   * Calls its `expire` when the time has passed, unless it is told otherwise before.
   * @param {Wire} wire
   * @param {number} seconds up to one more may pass
   */
  watch(wire, seconds) {
    wire.deadline = this.tick + seconds + 1
    this.#watched.add(wire)
    // One timer for all, and none while there is nothing to watch.
    this.#timer ??= setInterval(() => this.#sweep(), 1000).unref()
  }

  /** @param {Wire} wire */
  unwatch(wire) {
    this.#watched.delete(wire)
  }

  #sweep() {
    this.tick++
    for (const wire of this.#watched) {
      if (wire.deadline > this.tick) continue
      this.#watched.delete(wire)
      wire.expire()
    }
    if (this.#watched.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
