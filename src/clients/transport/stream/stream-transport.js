import { isAscii } from 'node:buffer'
import { disconnects } from '../../../base/errors.js'
import { sizeOf } from '../../../metrics/traffic.js'
import { requestHeaders, trustedUser } from '../http-request.js'
import { NO_CACHE } from '../origin.js'

/** @import { Codec, Encoded } from '../../protocol/contract.js' */
/** @import { Exchange, StreamRoute } from '../../server/contract.js' */
/** @import { TransportTraffic } from '../../../metrics/traffic.js' */
/** @import { Transport } from '../../session/session.js' */
/** @import { Carrier, TransportParts } from '../index.js' */

const LINE_FEED = Buffer.from('\n')
const DATA = Buffer.from('data: ')
const EVENT_END = Buffer.from('\n\n')

/** @param {string} json */
const toAscii = json =>
  json.replace(/[^\x00-\x7f]/g, char => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** ASCII, for clients that decode chunk by chunk (the JavaScript SDK before 5.8). @param {Encoded} message */
export function asciiLines(message) {
  if (typeof message === 'string') return `${toAscii(message)}\n`
  return isAscii(message) ? lines(message) : `${toAscii(Buffer.from(message).toString())}\n`
}

/** @param {Encoded} message JSON objects joined by line feeds @returns {Encoded} with a final line feed */
export function lines(message) {
  return typeof message === 'string' ? `${message}\n` : Buffer.concat([message, LINE_FEED])
}

/** @param {Encoded} message JSON objects joined by line feeds @returns {Encoded} one event per object */
export function events(message) {
  if (typeof message === 'string') {
    return message.includes('\n')
      ? `data: ${message.replaceAll('\n', '\n\ndata: ')}\n\n`
      : `data: ${message}\n\n`
  }
  return Buffer.concat([DATA, message, EVENT_END])
}

/** @param {Uint8Array} message JSON objects joined by line feeds @returns {Encoded} one event per object */
export function eventsOf(message) {
  return message.includes(LINE_FEED[0]) ? events(Buffer.from(message).toString()) : events(message)
}

/** @typedef {Readonly<Record<string, string>>} Head of a response */
/** @typedef {{user: string, headers: readonly string[] | null, head: Head}} StreamClient user of the trusted header */

/** Proxies must neither cache nor buffer a stream. @param {string} contentType @returns {Head} */
export const streamHead = contentType =>
  Object.freeze({ ...NO_CACHE, 'X-Accel-Buffering': 'no', 'Content-Type': contentType })

export const TEXT_HEAD = streamHead('text/plain; charset=utf-8')

/** @implements {Transport} @implements {Carrier} */
export class StreamTransport {
  name = ''
  emulated = false
  joins = true
  /** @type {TransportTraffic | null} */
  #traffic = null

  /** @param {TransportParts} parts */
  constructor({ context, server, fanout, cors, admission }) {
    this.context = context
    this.server = server
    this.fanout = fanout
    this.cors = cors
    this.admission = admission
    /** @type {StreamRoute} */
    this.route = {
      maxBuffered: context.config.client.queue_max_size,
      overflow: stream => stream.session.close(disconnects.slow),
      close: stream => stream.session.ended(),
    }
  }

  get traffic() {
    // The subclass sets `name` after this constructor.
    return (this.#traffic ??= this.context.traffic.of(this.name))
  }

  /**
   * @param {Encoded} message valid during the call; may be several, joined by the codec @param {Codec} _codec
   * @param {number} [_pushes] in a binary message
   * @returns {Encoded} kept by the stream
   */
  frame(message, _codec, _pushes) {
    return message
  }

  /** @param {Exchange} exchange before its handler returns @param {Head} head @returns {StreamClient} */
  clientOf(exchange, head) {
    return {
      user: trustedUser(exchange, this.context.config),
      headers: requestHeaders(exchange, this.context),
      head: this.cors.headers(exchange, head),
    }
  }

  /** @param {any} session @param {any} connection a stream, or a PendingStream @param {StreamClient} client */
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
