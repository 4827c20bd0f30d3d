import { retryAfter } from '../../server/contract.js'
import { Session } from '../../session/session.js'
import { asciiLines, lines } from './framing.js'
import { StreamTransport, streamHead, TEXT_HEAD } from './stream-transport.js'
import { UniStreamTransport } from './uni-stream.js'

/** @import { Codec, Encoded } from '../../protocol/contract.js' */
/** @import { Exchange } from '../../server/contract.js' */

const PROTOBUF = 'application/octet-stream'
const PROTOBUF_HEAD = streamHead(PROTOBUF)

/**
 * Two-way HTTP streaming (client protocol): commands come with the request and through the emulation
 * endpoint, replies and pushes go down the response.
 */
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
      // Checked after the body has arrived: other connections may have come meanwhile.
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
    // Fan-out messages are in the codec's scratch memory: copy.
    return typeof message === 'string' ? message : Buffer.from(message)
  }
}

/** One-way HTTP streaming: one push a line. */
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
