import { disconnects } from '../../errors.js'
import { sizeOf } from '../../stats/traffic.js'
import { trustedUser } from '../http-request.js'
import { NO_CACHE } from '../origin.js'

/**
 * @typedef {import('../../session/session.js').Session} Session
 * @typedef {import('../../server/contract.js').Exchange} Exchange
 * @typedef {import('../../protocol/contract.js').Encoded} Encoded
 * @typedef {import('../index.js').Transport} Transport
 *
 * @typedef {object} StreamParts
 * @property {import('../../worker/context.js').WorkerContext} context
 * @property {import('../../server/contract.js').SocketServer} server
 * @property {import('../fanout.js').Fanout} fanout
 * @property {import('../origin.js').Cors} cors
 * @property {import('../admission.js').Admission} admission
 */

/** What every stream's head says: no proxy keeps it or holds it back. */
const HEADERS = Object.freeze({ ...NO_CACHE, 'X-Accel-Buffering': 'no' })

/** @type {Map<string, Readonly<Record<string, string>>>} content type -> headers */
const heads = new Map()

/**
 * @param {string} contentType
 * @returns {Readonly<Record<string, string>>} one object for all
 */
function headOf(contentType) {
  let head = heads.get(contentType)
  if (head === undefined)
    heads.set(contentType, (head = Object.freeze({ ...HEADERS, 'Content-Type': contentType })))
  return head
}

/**
 * A transport whose sessions each hold an HTTP response. What a subclass adds is the framing of messages, and how a
 * request becomes a session.
 * @implements {Transport}
 * @implements {Carrier}
 * @typedef {import('../index.js').Carrier} Carrier
 */
export class StreamTransport {
  name = ''
  emulated = false
  context
  /** @type {import('../../stats/traffic.js').TransportTraffic | null} */
  #traffic = null
  server
  fanout
  cors
  admission
  /** @type {import('../../server/contract.js').StreamRoute} */
  route

  /** @param {StreamParts} parts */
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
    // A subclass has its name only when this class's constructor has returned.
    return (this.#traffic ??= this.context.traffic.of(this.name))
  }

  /**
   * A message, or several that the codec has joined, as they stand in the stream.
   * @param {Encoded} message valid during the call
   * @param {import('../../protocol/contract.js').Codec} _codec
   * @returns {Encoded} lives on
   */
  frame(message, _codec) {
    return message
  }

  /**
   * What the session needs to know of the request, taken while its headers can be read.
   * @param {Exchange} exchange
   * @param {string} contentType of the answer
   */
  clientOf(exchange, contentType) {
    return {
      user: trustedUser(exchange, this.context.config),
      head: this.cors.headers(exchange, headOf(contentType)),
    }
  }

  /**
   * @param {any} session with its connection set
   * @param {any} connection a stream, or what becomes one
   */
  opened(session, connection) {
    session.sessionId = this.context.newSessionId()
    connection.session = session
    this.context.sessions.opened(session)
  }

  /** @type {Transport['send']} */
  send({ connection, codec }, message) {
    this.server.write(connection, this.frame(message, codec))
  }

  /** @type {Carrier['deliver']} */
  deliver(members, message, _publication) {
    const clients = this.traffic.fannedOut(members.size, message.length)
    let framed = null
    for (const { connection, codec } of members) {
      // Those who follow one topic have one codec.
      framed ??= this.frame(message, codec)
      this.server.write(connection, framed)
    }
    return clients
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

  /** @type {Transport['close']} */
  close({ connection, codec }, { code, reason }, _cause) {
    const push = codec.disconnect(code, reason)
    this.traffic.sent(1, sizeOf(push))
    this.server.end(connection, this.frame(push, codec))
  }
}
