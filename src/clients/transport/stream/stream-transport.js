import { disconnects } from '../../../base/errors.js'
import { sizeOf } from '../../../metrics/traffic.js'
import { requestHeaders, trustedUser } from '../http-request.js'
import { NO_CACHE } from '../origin.js'

/** @import { Codec, Encoded } from '../../protocol/contract.js' */
/** @import { Exchange, StreamRoute } from '../../server/contract.js' */
/** @import { TransportTraffic } from '../../../metrics/traffic.js' */
/** @import { Transport } from '../../session/transport.js' */
/** @import { Carrier, TransportParts } from '../index.js' */

/**
 * @typedef {object} StreamClient of a request
 * @property {string} user of the trusted header
 * @property {readonly string[] | null} headers that hooks and proxies need
 * @property {Record<string, string>} head of the answer
 */

/**
 * Head of a stream: proxies must neither cache nor buffer it.
 * @param {string} contentType
 * @returns {Readonly<Record<string, string>>}
 */
export const streamHead = contentType =>
  Object.freeze({ ...NO_CACHE, 'X-Accel-Buffering': 'no', 'Content-Type': contentType })

export const TEXT_HEAD = streamHead('text/plain; charset=utf-8')

/**
 * A transport whose sessions each hold an HTTP response. A subclass frames messages and turns requests into sessions.
 * @implements {Transport}
 * @implements {Carrier}
 */
export class StreamTransport {
  name = ''
  emulated = false
  joins = true
  context
  /** @type {TransportTraffic | null} */
  #traffic = null
  server
  fanout
  cors
  admission
  /** @type {StreamRoute} */
  route

  /** @param {TransportParts} parts */
  constructor({ context, server, fanout, cors, admission }) {
    this.context = context
    this.server = server
    this.fanout = fanout
    this.cors = cors
    this.admission = admission
    this.route = {
      maxBuffered: context.config.client.queue_max_size,
      overflow: stream => stream.session.close(disconnects.slow),
      close: stream => stream.session.ended(),
    }
  }

  get traffic() {
    // `name` is set by the subclass, after this constructor.
    return (this.#traffic ??= this.context.traffic.of(this.name))
  }

  /**
   * @param {Encoded} message valid during the call; may be several, joined by the codec @param {Codec} _codec
   * @param {number} [_pushes] in a message that is bytes
   * @returns {Encoded} as in the stream; lives on
   */
  frame(message, _codec, _pushes) {
    return message
  }

  /**
   * Reads the headers, which are valid only until the handler returns.
   * @param {Exchange} exchange
   * @param {Readonly<Record<string, string>>} head of the answer
   * @returns {StreamClient}
   */
  clientOf(exchange, head) {
    return {
      user: trustedUser(exchange, this.context.config),
      headers: requestHeaders(exchange, this.context),
      head: this.cors.headers(exchange, head),
    }
  }

  /**
   * @param {any} session with its connection set @param {any} connection a stream, or what becomes one
   * @param {StreamClient} client
   */
  opened(session, connection, { user, headers }) {
    session.user = user
    if (headers !== null) session.needExtra().headers = headers
    session.sessionId = this.context.newSessionId()
    connection.session = session
    this.context.sessions.opened(session)
  }

  /** @type {Transport['send']} */
  send({ connection, codec }, message) {
    this.server.write(connection, this.frame(message, codec))
  }

  /** @type {Carrier['deliver']} */
  deliver(members, message, _publication, pushes = 1) {
    const clients = this.traffic.fannedOut(members.size, message.length, pushes)
    let framed = null
    for (const { connection, codec } of members) {
      // All followers of a topic have the same codec.
      framed ??= this.frame(message, codec, pushes)
      this.server.write(connection, framed)
    }
    return clients
  }

  /** @type {Transport['unread']} */
  unread({ connection }) {
    return this.server.unread(connection)
  }

  /** @type {Transport['follow']} */
  follow(session, topic) {
    this.fanout.follow(this, session, topic)
  }

  /** @type {Transport['unfollow']} */
  unfollow(session, topic) {
    this.fanout.unfollow(this, session, topic)
  }

  framePing() {}

  /** @type {Transport['remoteAddress']} */
  remoteAddress({ connection }) {
    return this.server.remoteAddress(connection)
  }

  /** @type {Transport['close']} */
  close({ connection, codec }, { code, reason, silent }, _cause) {
    if (silent) return this.server.end(connection, '')
    const push = codec.disconnect(code, reason)
    this.traffic.sent(1, sizeOf(push))
    this.server.end(connection, this.frame(push, codec))
  }
}
