import { disconnects } from '../../base/errors.js'
import { sizeOf } from '../../metrics/traffic.js'
import { parseConnectRequest } from '../protocol/json-commands.js'
import { connectUnidirectional } from '../session/commands/index.js'
import { State } from '../session/state.js'
import { queryValue, requestHeaders, trustedUser } from './http-request.js'
import { WebSocketTransport } from './websocket.js'

/** @import { Session, Transport } from '../session/session.js' */
/** @import { TransportParts } from './index.js' */

/** WebSocket for receive-only clients (client protocol). */
export class UniWebSocketTransport extends WebSocketTransport {
  /** @param {TransportParts} parts */
  constructor(parts) {
    super(parts, 'uni_websocket')
  }

  mount() {
    this.route(this.context.config.uni_websocket, {
      protocols: [],
      compression: null,
      accept: exchange => ({
        user: trustedUser(exchange, this.context.config),
        headers: requestHeaders(exchange, this.context),
        request: queryValue(exchange.query, 'cf_connect') ?? '',
        token: queryValue(exchange.query, 'token') ?? '',
      }),
      open: (connection, { user, headers, request, token }) => {
        const { codecs, newSessionId } = this.context
        const session = this.opened(connection, codecs.uniJson, 0, user, headers, newSessionId())
        session.info = token
        if (request === '') return
        this.traffic.received(1, sizeOf(request))
        begin(session, request)
      },
      message: ({ session }, data) => {
        this.traffic.received(1, data.length)
        // Only the first message, the connect request, is handled.
        if (session?.state === State.OPEN) begin(session, data.toString())
      },
      pong: () => {},
    })
  }

  /** @type {Transport['send']} */
  send({ connection, codec }, message) {
    if (typeof message !== 'string' || this.context.config.uni_websocket.join_push_messages) {
      this.server.send(connection, message, false)
    } else {
      for (const push of message.split('\n')) this.server.send(connection, push, false)
    }
    // Also sends a ping frame, for proxies.
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

/** @param {Session} session with the upgrade's token in `info` @param {string} text connect request */
function begin(session, text) {
  let request
  try {
    request = parseConnectRequest(text)
  } catch {
    return session.close(disconnects.badRequest)
  }
  request.token ||= session.info || undefined
  connectUnidirectional(session, request)
}
