import { disconnects } from '../../errors.js'
import { parseConnectRequest } from '../../protocol/json-commands.js'
import { connectUnidirectional } from '../../session/commands/index.js'
import { Session } from '../../session/session.js'
import { sizeOf } from '../../stats/traffic.js'
import { bearerToken, queryValue } from '../http-request.js'
import { StreamTransport } from './stream-transport.js'

/**
 * @typedef {import('../../server/contract.js').Exchange} Exchange
 * @typedef {import('../../session/session.js').Session} SessionType
 */

/** The connection of a session until the result of its connect decides the HTTP status; then a stream replaces it. */
class PendingStream {
  /** @type {any} */
  session = null

  /** @param {Exchange} exchange @param {Record<string, string>} head */
  constructor(exchange, head) {
    this.exchange = exchange
    this.head = head
    exchange.waiter = this
  }

  /** The client has left. */
  abandoned() {
    this.session?.ended()
  }
}

/** HTTP responses for clients that only receive (client protocol, section 17). */
export class UniStreamTransport extends StreamTransport {
  contentType = ''

  /** @returns {{enabled: boolean, transforms: {code: number, to: {status_code: number, body: string}}[]}} */
  get responses() {
    return { enabled: false, transforms: [] }
  }

  /**
   * @param {Exchange} exchange
   * @returns {{user: string, head: Record<string, string>, token: string, lastEventId: string}}
   */
  caller(exchange) {
    const { user, head } = this.clientOf(exchange, this.contentType)
    const token = bearerToken(exchange) || queryValue(exchange.query, 'token') || ''
    return { user, head, token, lastEventId: exchange.header('last-event-id') }
  }

  /**
   * Begins a session.
   * @param {Exchange} exchange
   * @param {string} text connect request
   * @param {{user: string, head: Record<string, string>, token: string, lastEventId: string}} caller
   */
  begin(exchange, text, caller) {
    let request
    try {
      request = parseConnectRequest(text)
    } catch {
      return exchange.reply(400, caller.head, 'invalid connect request')
    }
    // Checked after the body has arrived: other connections may have come meanwhile.
    if (!this.admission.admits()) return exchange.reply(503, caller.head, '')
    request.token ||= caller.token || undefined
    this.extendRequest(request, caller)
    const { codecs } = this.context
    const connection = this.responses.enabled
      ? new PendingStream(exchange, caller.head)
      : exchange.stream(200, caller.head, this.route)
    if (connection === null) return
    const session = new Session(this, connection, codecs.uniJson, 0)
    session.user = caller.user
    this.opened(session, connection)
    this.traffic.received(1, sizeOf(text))
    if (!(connection instanceof PendingStream)) this.preamble(connection)
    connectUnidirectional(session, request)
  }

  /** Extends the connect request of a subclass. @param {any} _request @param {{lastEventId: string}} _caller */
  extendRequest(_request, _caller) {}

  /** Writes the first bytes of a subclass's stream. @param {import('../../server/contract.js').Stream} _stream */
  preamble(_stream) {}

  /** @param {SessionType} session @param {import('../../protocol/contract.js').Encoded} message */
  send(session, message) {
    const { connection } = session
    if (connection instanceof PendingStream) {
      const stream = connection.exchange.stream(200, connection.head, this.route)
      // The client has left: end the session, so that no fan-out reaches it.
      if (stream === null) return session.ended()
      connection.exchange.waiter = null
      stream.session = session
      session.connection = stream
      this.preamble(stream)
    }
    super.send(session, message)
  }

  /**
   * @param {SessionType} session
   * @param {import('../../errors.js').Disconnect} disconnect
   * @param {Error & {code?: number}} cause
   */
  close(session, disconnect, cause) {
    const { connection } = session
    if (!(connection instanceof PendingStream)) return super.close(session, disconnect, cause)
    const code = cause.code ?? disconnects.internal.code
    const to = this.responses.transforms.find(transform => transform.code === code)?.to
    connection.exchange.waiter = null
    const { 'Content-Type': _, ...head } = connection.head
    connection.exchange.reply(to?.status_code ?? 500, head, to?.body || cause.message)
  }
}
