import { disconnects } from '../../base/errors.js'
import { sizeOf } from '../../metrics/traffic.js'
import { parseConnectRequest } from '../protocol/json-commands.js'
import { connectUnidirectional } from '../session/commands/index.js'
import { Session } from '../session/session.js'
import { State } from '../session/state.js'
import { queryValue, requestHeaders, trustedUser } from './http-request.js'
import { closeCode, WebSocketTransport } from './websocket.js'

/** @import { Connection, Exchange, UpgradeRefusal } from '../server/contract.js' */
/** @import { Transport } from '../session/transport.js' */
/** @import { TransportParts } from './index.js' */

/** @typedef {{user: string, headers: readonly string[] | null, request: string, token: string}} Accepted */

/** WebSocket for clients that only receive (client protocol). */
export class UniWebSocketTransport extends WebSocketTransport {
  /** @param {TransportParts} parts */
  constructor(parts) {
    super(parts, 'uni_websocket')
  }

  mount() {
    const { uni_websocket, client } = this.context.config
    this.server.websocket(uni_websocket.handler_prefix, {
      maxMessage: uni_websocket.message_size_limit,
      maxBuffered: client.queue_max_size,
      protocols: [],
      compression: null,
      upgrade: exchange => this.#upgrade(exchange),
      open: (connection, accepted) => this.#open(connection, accepted),
      message: ({ session }, data) => {
        this.traffic.received(1, data.length)
        // Only the first message counts: the connect request. Until then `info` holds the token of the upgrade.
        if (session?.state === State.OPEN) begin(session, data.toString(), session.info)
      },
      close: (connection, code) => connection.session?.ended(closeCode(code)),
      overflow: connection => connection.session?.close(disconnects.slow),
      pong: () => {},
    })
  }

  /** @param {Exchange} exchange @returns {number | UpgradeRefusal | Accepted} */
  #upgrade(exchange) {
    if (!this.cors.admits(exchange)) return this.cors.refusal(exchange)
    if (!this.admission.admits(exchange)) return 503
    return {
      user: trustedUser(exchange, this.context.config),
      headers: requestHeaders(exchange, this.context),
      request: queryValue(exchange.query, 'cf_connect') ?? '',
      token: queryValue(exchange.query, 'token') ?? '',
    }
  }

  /** @param {Connection} connection @param {Accepted} accepted */
  #open(connection, { user, headers, request, token }) {
    const session = new Session(this, connection, this.context.codecs.uniJson, 0)
    session.user = user
    if (headers !== null) session.needExtra().headers = headers
    session.sessionId = this.context.newSessionId()
    connection.session = session
    this.context.sessions.opened(session)
    if (request !== '') {
      this.traffic.received(1, sizeOf(request))
      begin(session, request, token)
    } else session.info = token
  }

  /** @type {Transport['send']} */
  send({ connection, codec }, message) {
    if (typeof message !== 'string' || this.context.config.uni_websocket.join_push_messages) {
      this.server.send(connection, message, false)
    } else {
      for (const push of message.split('\n')) this.server.send(connection, push, false)
    }
    // Also a ping frame, for proxies that see frames only.
    if (message === codec.ping) this.server.ping(connection)
  }

  /** @type {Transport['close']} */
  close(session, disconnect, cause) {
    const { connection, codec } = session
    if (!disconnect.silent && !this.context.config.uni_websocket.disable_disconnect_push) {
      const push = codec.disconnect(disconnect.code, disconnect.reason)
      this.traffic.sent(1, sizeOf(push))
      this.server.send(connection, push, false)
    }
    super.close(session, disconnect, cause)
  }
}

/**
 * @param {Session} session @param {string} text connect request
 * @param {string} token of the upgrade, for a request without one
 */
function begin(session, text, token) {
  let request
  try {
    request = parseConnectRequest(text)
  } catch {
    return session.close(disconnects.badRequest)
  }
  request.token ||= token || undefined
  connectUnidirectional(session, request)
}
