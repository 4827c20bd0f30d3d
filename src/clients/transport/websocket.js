import { disconnects } from '../../base/errors.js'
import { Session } from '../session/session.js'
import { Trait } from '../session/state.js'
import { requestHeaders, trustedUser } from './http-request.js'

/** @import { Codec } from '../protocol/contract.js' */
/** @import { Connection, Exchange, WebSocketRoute } from '../server/contract.js' */
/** @import { Transport } from '../session/session.js' */
/** @import { TransportParts } from './index.js' */

/** @typedef {{protobuf: boolean, traits: number, user: string, headers: readonly string[] | null}} Accepted */

/** Shared by most clients. @type {Accepted} */
const PLAIN = Object.freeze({ protobuf: false, traits: 0, user: '', headers: null })
/** @type {Accepted} */
const PLAIN_PROTOBUF = Object.freeze({ ...PLAIN, protobuf: true })

const PROTOBUF = 'centrifuge-protobuf'

/** The client protocol over WebSocket. @implements {Transport} */
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
    const { websocket } = this.context.config
    this.route(websocket, {
      protocols: ['centrifuge-json', PROTOBUF],
      compression: websocket.compression
        ? { level: websocket.compression_level, minSize: websocket.compression_min_size }
        : null,
      accept: (exchange, protocol) => this.#accept(exchange, protocol),
      open: (connection, { protobuf, traits, user, headers }) => {
        const { codecs } = this.context
        this.opened(connection, protobuf ? codecs.protobuf : codecs.json, traits, user, headers)
      },
      message: (connection, data) => connection.session?.receive(data),
      pong: connection => connection.session?.framePong(),
    })
  }

  /**
   * @param {{handler_prefix: string, message_size_limit: number}} options
   * @param {Pick<WebSocketRoute, 'protocols' | 'compression' | 'open' | 'message' | 'pong'> &
   *   {accept: (exchange: Exchange, protocol: string) => object}} handlers `accept` returns the argument of `open`
   */
  route({ handler_prefix, message_size_limit }, { accept, ...handlers }) {
    this.server.websocket(handler_prefix, {
      ...handlers,
      maxMessage: message_size_limit,
      maxBuffered: this.context.config.client.queue_max_size,
      upgrade: (exchange, protocol) => {
        if (!this.cors.admits(exchange)) return this.cors.refusal(exchange)
        return this.admission.admits(exchange) ? accept(exchange, protocol) : 503
      },
      close: (connection, code) => connection.session?.ended(closeCode(code)),
      overflow: connection => connection.session?.close(disconnects.slow),
    })
  }

  /** @param {Exchange} exchange @param {string} protocol selected subprotocol, '' if none @returns {Accepted} */
  #accept(exchange, protocol) {
    const user = trustedUser(exchange, this.context.config)
    const query = exchange.query === '' ? null : new URLSearchParams(exchange.query)
    const framePings = query?.get('cf_ws_frame_ping_pong') === 'true'
    const protobuf =
      protocol === PROTOBUF || query?.get('format') === 'protobuf' || query?.get('cf_protocol') === 'protobuf'
    const headers = requestHeaders(exchange, this.context)
    if (user === '' && !framePings && headers === null) return protobuf ? PLAIN_PROTOBUF : PLAIN
    return { protobuf, traits: framePings ? Trait.FRAME_PINGS : 0, user, headers }
  }

  /**
   * @param {Connection} connection @param {Codec} codec @param {number} traits @param {string} user
   * @param {readonly string[] | null} headers @param {string} [sessionId]
   */
  opened(connection, codec, traits, user, headers, sessionId = '') {
    const session = new Session(this, connection, codec, traits)
    session.user = user
    if (headers !== null) session.needExtra().headers = headers
    session.sessionId = sessionId
    connection.session = session
    this.context.sessions.opened(session)
    return session
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
    // The close event is ignored.
    connection.session = null
    if (silent) this.server.terminate(connection)
    else this.server.close(connection, code, reason)
  }
}

const NORMAL = 1000
/** Last close code defined by the WebSocket protocol. */
const LAST = 1015

/** Higher codes are application codes. @param {number} code @returns {number} */
const closeCode = code => (code >= NORMAL && code <= LAST ? code : NORMAL)
