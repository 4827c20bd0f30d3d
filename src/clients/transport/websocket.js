import { disconnects } from '../../base/errors.js'
import { Session } from '../session/session.js'
import { Trait } from '../session/state.js'
import { requestHeaders, trustedUser } from './http-request.js'

/** @import { Connection, Exchange, UpgradeRefusal } from '../server/contract.js' */
/** @import { Transport } from '../session/transport.js' */
/** @import { TransportParts } from './index.js' */

/**
 * @typedef {{protobuf: boolean, traits: number, user: string, headers: readonly string[] | null}} Accepted properties
 *   of an upgraded client
 */

/** Shared by most clients. @type {Accepted} */
const PLAIN = Object.freeze({ protobuf: false, traits: 0, user: '', headers: null })
/** @type {Accepted} */
const PLAIN_PROTOBUF = Object.freeze({ ...PLAIN, protobuf: true })

const PROTOBUF = 'centrifuge-protobuf'

/**
 * The client protocol over WebSocket. One object serves all sessions.
 * @implements {Transport}
 */
export class WebSocketTransport {
  emulated = false

  /** @param {TransportParts} parts @param {string} [name] of a subclass */
  constructor({ context, server, cors, admission }, name = 'websocket') {
    this.name = name
    this.context = context
    this.traffic = context.traffic.of(name)
    this.server = server
    this.cors = cors
    this.admission = admission
  }

  mount() {
    const { websocket, client } = this.context.config
    this.server.websocket(websocket.handler_prefix, {
      maxMessage: websocket.message_size_limit,
      maxBuffered: client.queue_max_size,
      protocols: ['centrifuge-json', PROTOBUF],
      compression: websocket.compression
        ? { level: websocket.compression_level, minSize: websocket.compression_min_size }
        : null,
      upgrade: (exchange, protocol) => this.#upgrade(exchange, protocol),
      open: (connection, accepted) => this.#open(connection, accepted),
      message: (connection, data) => connection.session?.receive(data),
      close: (connection, code) => connection.session?.ended(closeCode(code)),
      overflow: connection => connection.session?.close(disconnects.slow),
      pong: connection => connection.session?.framePong(),
    })
  }

  /**
   * @param {Exchange} exchange @param {string} protocol the chosen subprotocol, '' if none
   * @returns {number | UpgradeRefusal | Accepted}
   */
  #upgrade(exchange, protocol) {
    if (!this.cors.admits(exchange)) return this.cors.refusal(exchange)
    if (!this.admission.admits(exchange)) return 503
    const user = trustedUser(exchange, this.context.config)
    const query = exchange.query === '' ? null : new URLSearchParams(exchange.query)
    const framePings = query?.get('cf_ws_frame_ping_pong') === 'true'
    const protobuf =
      protocol === PROTOBUF || query?.get('format') === 'protobuf' || query?.get('cf_protocol') === 'protobuf'
    const headers = requestHeaders(exchange, this.context)
    if (user === '' && !framePings && headers === null) return protobuf ? PLAIN_PROTOBUF : PLAIN
    return { protobuf, traits: framePings ? Trait.FRAME_PINGS : 0, user, headers }
  }

  /** @param {Connection} connection @param {Accepted} accepted */
  #open(connection, { protobuf, traits, user, headers }) {
    const { codecs } = this.context
    const session = new Session(this, connection, protobuf ? codecs.protobuf : codecs.json, traits)
    session.user = user
    if (headers !== null) session.needExtra().headers = headers
    connection.session = session
    this.context.sessions.opened(session)
  }

  /** @type {Transport['send']} */
  send({ connection, codec }, frame) {
    this.server.send(connection, frame, codec.binary)
  }

  /** @type {Transport['unread']} */
  unread({ connection }) {
    return this.server.buffered(connection)
  }

  /** @type {Transport['follow']} */
  follow({ connection }, topic) {
    this.server.subscribe(connection, topic)
  }

  /** @type {Transport['unfollow']} */
  unfollow({ connection }, topic) {
    this.server.unsubscribe(connection, topic)
  }

  /** @type {Transport['framePing']} */
  framePing({ connection }) {
    this.server.ping(connection)
  }

  /** @type {Transport['remoteAddress']} */
  remoteAddress({ connection }) {
    return this.server.remoteAddress(connection)
  }

  /** @type {Transport['close']} */
  close({ connection }, { code, reason, silent }, _cause) {
    // Ignore the close event of the connection.
    connection.session = null
    if (silent) this.server.terminate(connection)
    else this.server.close(connection, code, reason)
  }
}

/** Close code of a normal close. */
const NORMAL = 1000
/** Last close code that the WebSocket protocol defines. */
const LAST = 1015

/**
 * Close code of a client, for logs and counters. Higher codes are the gateway's own: a client that sends one must
 * neither pass for the gateway nor fill the counters with codes that it invents.
 * @param {number} code
 * @returns {number}
 */
export const closeCode = code => (code >= NORMAL && code <= LAST ? code : NORMAL)
