import { retryAfter } from '../../server/contract.js'
import { Session } from '../../session/session.js'
import { asciiLines, lines, StreamTransport, streamHead, TEXT_HEAD } from './stream-transport.js'
import { UniStreamTransport } from './uni-stream.js'

/** @import { Codec, Encoded } from '../../protocol/contract.js' */
/** @import { Exchange } from '../../server/contract.js' */

const PROTOBUF = 'application/octet-stream'
const PROTOBUF_HEAD = streamHead(PROTOBUF)

/** Two-way HTTP streaming (client protocol). The request contains the first commands; later ones use emulation. */
export class HttpStreamTransport extends StreamTransport {
  name = 'http_stream'
  emulated = true

  mount() {
    this.cors.post(this.server, this.context.config.http_stream.handler_prefix, exchange =>
      this.#request(exchange),
    )
  }

  /** @param {Exchange} exchange */
  #request(exchange) {
    const binary = exchange.header('content-type') === PROTOBUF
    const client = this.clientOf(exchange, binary ? PROTOBUF_HEAD : TEXT_HEAD)
    const { head } = client
    const { codecs, config } = this.context
    exchange.body(config.http_stream.max_request_body_size, body => {
      if (body === null) return exchange.reply(413, head, '')
      // After the body: other connections may have opened.
      if (!this.admission.admits(exchange)) return exchange.reply(503, { ...head, ...retryAfter() }, '')
      const stream = exchange.stream(200, head, this.route)
      if (stream === null) return
      const session = new Session(this, stream, binary ? codecs.protobuf : codecs.json, 0)
      this.opened(session, stream, client)
      session.receive(body)
    })
  }

  /** @param {Encoded} message @param {Codec} codec */
  frame(message, { binary }) {
    if (!binary) return asciiLines(message)
    // Copies fan-out messages from the codec's scratch memory.
    return typeof message === 'string' ? message : Buffer.from(message)
  }
}

/** One-way HTTP streaming: one push per line. */
export class UniHttpStreamTransport extends UniStreamTransport {
  name = 'uni_http_stream'
  head = TEXT_HEAD

  get responses() {
    return this.context.config.uni_http_stream.connect_code_to_http_response
  }

  mount() {
    const { handler_prefix, max_request_body_size } = this.context.config.uni_http_stream
    this.cors.post(this.server, handler_prefix, exchange => this.post(exchange, max_request_body_size))
  }

  /** @param {Encoded} message */
  frame(message) {
    return lines(message)
  }
}
