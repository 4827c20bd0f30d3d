// Opens connections to the targets over any transport, and passes received messages to one listener.
//
//   wire.js -> http.js -> connection.js -> websocket.js, stream.js   socket, HTTP responses, messages, transports
//   protobuf.js, peers.js     the same protocol in Protobuf; servers with another protocol
//   target.js, addresses.js   a server and its POSTs; source addresses and ports
//
// May import: Node.js only. Promises: it connects to allowed targets only; `closed` is called once for each `dial`;
// input is bounded; an idle connection costs one wire and one socket.

import { parseAddresses, Sources } from './addresses.js'
import { BareConnection, SocketIoConnection } from './peers.js'
import { ProtobufConnection } from './protobuf.js'
import { LongPollConnection, SseConnection, StreamConnection } from './stream.js'
import { Target } from './target.js'
import { WebSocketConnection } from './websocket.js'

const READ_SIZE = 65_536

/** @type {Map<string, any>} */
const CONNECTIONS = new Map(
  Object.entries({
    websocket: WebSocketConnection,
    http_stream: StreamConnection,
    sse: SseConnection,
    long_poll: LongPollConnection,
    uni_websocket: WebSocketConnection,
    uni_http_stream: StreamConnection,
    uni_sse: SseConnection,
    protobuf: ProtobufConnection,
    uni_bare: BareConnection,
    uni_socket_io: SocketIoConnection,
  }),
)

/**
 * @import { Settings } from '../../schema.js'
 * @import { Wire } from './wire.js'
 * @typedef {import('./connection.js').Connection} Connection
 * @typedef {object} Listener methods are called synchronously, but never within `dial`
 * @property {(connection: Connection, buffer: Buffer, start: number, end: number) => void} message one complete JSON
 *   message (reply, push, or `{}`, a ping) in buffer[start, end), valid during the call only
 * @property {(connection: Connection, code: number, reason: string) => void} closed exactly once for each `dial`: the
 *   code of the close or disconnect, or 0, and a short reason: `no pong`, `ECONNREFUSED`, `HTTP 503`, `timeout`,
 *   `closed` (here), `reset` (here)
 * @typedef {Pick<Settings, 'targets' | 'transport' | 'addresses' | 'ports'> & {allow: string[]}} DialerOptions `allow`:
 *   `host` or `host:port`; no other target is used
 */

export class Dialer {
  /** All sockets read into it; incomplete messages are copied immediately. */
  buffer = Buffer.allocUnsafeSlow(READ_SIZE)
  /** Seconds with at least one watched wire. */
  tick = 0
  #targets
  #Connection
  /** Wires with a deadline. @type {Set<Wire>} */
  #watched = new Set()
  /** @type {NodeJS.Timeout | undefined} */
  #timer

  /**
   * @param {DialerOptions} options @param {Listener} listener
   * @param {{bytesIn: number, bytesOut: number}} bytes counters of application-layer bytes
   * @throws {Error} one line: a target that is not allowed, an invalid range
   */
  constructor(
    { targets, allow, transport, addresses, ports },
    listener,
    bytes = { bytesIn: 0, bytesOut: 0 },
  ) {
    this.listener = listener
    this.bytes = bytes
    this.oneWay = transport.startsWith('uni_')
    this.path = `/connection/${transport.replace('long_', '')}`
    const Connection = CONNECTIONS.get(transport)
    if (!Connection)
      throw new Error(`unknown transport "${transport}"; use one of ${[...CONNECTIONS.keys()].join(', ')}`)
    if (targets.length === 0) throw new Error('targets is empty: at least one is required')
    this.#Connection = Connection
    const from = parseAddresses(addresses)
    this.#targets = targets.map(url => {
      const target = new Target(this, url, new Sources(from, ports))
      if (!allow.some(entry => target.names.includes(entry.toLowerCase())))
        throw new Error(`target ${url} is not allowed; allowed: ${allow.join(', ') || 'none'}`)
      return target
    })
  }

  /** @param {number} slot @param {number} number selects the target @param {object} params @returns {Connection} */
  dial(slot, number, params) {
    const target = this.#targets[number % this.#targets.length]
    const connection = new this.#Connection(target, slot, number, params)
    target.sources.begin(number)
    connection.open()
    return connection
  }

  /** Whether closing the socket closes the connection, without a message. */
  get closesSocketOnly() {
    return this.#Connection.closesSocketOnly
  }

  /** Calls `wire.expire` after `seconds`, up to 1 s late. @param {Wire} wire @param {number} seconds */
  watch(wire, seconds) {
    wire.deadline = this.tick + seconds + 1
    this.#watched.add(wire)
    // One timer for all wires, none while nothing is watched.
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
