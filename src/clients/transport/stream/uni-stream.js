import { disconnects } from '../../../base/errors.js'
import { sizeOf } from '../../../metrics/traffic.js'
import { parseConnectRequest } from '../../protocol/json-commands.js'
import { retryAfter } from '../../server/contract.js'
import { connectUnidirectional } from '../../session/commands/index.js'
import { Session } from '../../session/session.js'
import { queryValue } from '../http-request.js'
import { StreamTransport, TEXT_HEAD } from './stream-transport.js'

/** @import { Config } from '../../../config/options.js' */
/** @import { Disconnect } from '../../../base/errors.js' */
/** @import { Encoded } from '../../protocol/contract.js' */
/** @import { Exchange, Stream } from '../../server/contract.js' */
/** @import { Head, StreamClient } from './stream-transport.js' */

/** @typedef {StreamClient & {token: string, lastEventId: string}} Client of a request */

/** A session's connection until the connect result determines the HTTP status. */
class PendingStream {
  /** @type {any} */
  session = null

  /** @param {Exchange} exchange @param {Head} head */
  constructor(exchange, head) {
    this.exchange = exchange
    this.head = head
    exchange.waiter = this
  }

  remoteAddress() {
    return this.exchange.remoteAddress()
  }

  abandoned() {
    this.session?.ended()
  }
}

/** HTTP streams for receive-only clients (client protocol). */
export class UniStreamTransport extends StreamTransport {
  /** @type {Head} */
  head = TEXT_HEAD

  /** @returns {Config['uni_sse']['connect_code_to_http_response']} */
  get responses() {
    return { enabled: false, transforms: [] }
  }

  /** @param {Exchange} exchange before its handler returns @returns {Client} */
  client(exchange) {
    const token = queryValue(exchange.query, 'token') ?? ''
    return { ...this.clientOf(exchange, this.head), token, lastEventId: exchange.header('last-event-id') }
  }

  /** @param {Exchange} exchange @param {number} limit bytes */
  post(exchange, limit) {
    const client = this.client(exchange)
    exchange.body(limit, body => {
      if (body === null) exchange.reply(413, client.head, '')
      else this.begin(exchange, body.toString(), client)
    })
  }

  /** @param {Exchange} exchange @param {string} text connect request @param {Client} client */
  begin(exchange, text, client) {
    let request
    try {
      request = parseConnectRequest(text)
    } catch {
      return exchange.reply(400, client.head, 'invalid connect request')
    }
    // After the body: other connections may have opened.
    if (!this.admission.admits(exchange)) return exchange.reply(503, { ...client.head, ...retryAfter() }, '')
    request.token ||= client.token || undefined
    this.extendRequest(request, client)
    const { codecs } = this.context
    const connection = this.responses.enabled
      ? new PendingStream(exchange, client.head)
      : exchange.stream(200, client.head, this.route)
    if (connection === null) return
    const session = new Session(this, connection, codecs.uniJson, 0)
    this.opened(session, connection, client)
    this.traffic.received(1, sizeOf(text))
    if (!(connection instanceof PendingStream)) this.preamble(connection)
    connectUnidirectional(session, request)
  }

  /** @param {any} _request connect request @param {{lastEventId: string}} _client */
  extendRequest(_request, _client) {}

  /** @param {Stream} _stream */
  preamble(_stream) {}

  /** @param {Session} session @param {Encoded} message */
  send(session, message) {
    const { connection } = session
    if (connection instanceof PendingStream) {
      const stream = connection.exchange.stream(200, connection.head, this.route)
      // The client disconnected.
      if (stream === null) return session.ended()
      connection.exchange.waiter = null
      stream.session = session
      session.connection = stream
      this.preamble(stream)
    }
    super.send(session, message)
  }

  /** @param {Session} session */
  remoteAddress(session) {
    const { connection } = session
    return connection instanceof PendingStream ? connection.remoteAddress() : super.remoteAddress(session)
  }

  /** @param {Session} session @param {Disconnect} disconnect @param {Error & {code?: number}} cause */
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
