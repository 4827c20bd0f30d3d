import { Session } from '../../session/session.js'
import { queryValue } from '../query.js'
import { events } from './framing.js'
import { StreamTransport } from './stream-transport.js'

export const EVENT_STREAM = 'text/event-stream; charset=utf-8'
const PREAMBLE = '\r\n'

/**
 * What the body begins with, so that a proxy that waits for the first byte lets the head through. In a chunk of its own: npm `eventsource` 2
 * swallows an event that comes in the same one.
 * @param {import('../../server/contract.js').SocketServer} server
 * @param {import('../../server/contract.js').Stream} stream
 */
export function writePreamble(server, stream) {
  server.write(stream, PREAMBLE)
  server.flush(stream)
}

/**
 * Two-way server-sent events (client protocol, section 16.2): the first commands come with the request, later ones through the emulation
 * endpoint.
 */
export class SseTransport extends StreamTransport {
  name = 'sse'
  emulated = true

  /** Takes the path that the configuration names. */
  mount() {
    const path = this.context.config.sse.handler_prefix
    this.server.route('GET', path, exchange => this.#get(exchange))
    this.server.route('POST', path, exchange => this.#post(exchange))
    this.server.route('*', path, exchange =>
      exchange.reply(405, this.cors.headers(exchange, { Allow: 'GET, POST' }), 'Method Not Allowed'),
    )
  }

  /** @param {import('../../server/contract.js').Exchange} exchange */
  #get(exchange) {
    const { user, head } = this.visitor(exchange, EVENT_STREAM)
    const commands = queryValue(exchange.query, 'cf_connect')
    if (!commands) return exchange.reply(400, head, 'cf_connect is missing')
    this.#open(exchange, head, user, Buffer.from(commands))
  }

  /** @param {import('../../server/contract.js').Exchange} exchange */
  #post(exchange) {
    const { user, head } = this.visitor(exchange, EVENT_STREAM)
    exchange.body(this.context.config.sse.max_request_body_size, body => {
      if (body === null) exchange.reply(413, head, '')
      else this.#open(exchange, head, user, body)
    })
  }

  /**
   * @param {import('../../server/contract.js').Exchange} exchange
   * @param {Record<string, string>} head
   * @param {string} user
   * @param {Buffer} commands
   */
  #open(exchange, head, user, commands) {
    if (!this.admission.admits()) return exchange.reply(503, head, '')
    const stream = exchange.stream(200, head, this.route)
    if (stream === null) return
    const session = new Session(this, stream, this.context.codecs.json, 0)
    session.user = user
    this.opened(session, stream)
    writePreamble(this.server, stream)
    session.receive(commands)
  }

  /** @param {import('../../protocol/contract.js').Encoded} message */
  frame(message) {
    return events(message)
  }
}
