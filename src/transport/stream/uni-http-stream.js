import { lines } from './framing.js'
import { UniStreamTransport } from './uni-stream.js'

/**
 * One-way HTTP streaming: a push on each line.
 */
export class UniHttpStreamTransport extends UniStreamTransport {
  name = 'uni_http_stream'
  contentType = 'text/plain; charset=utf-8'

  get responses() {
    return this.context.config.uni_http_stream.connect_code_to_http_response
  }

  /** Takes the path that the configuration names. */
  mount() {
    const { handler_prefix, max_request_body_size } = this.context.config.uni_http_stream
    this.cors.post(this.server, handler_prefix, exchange => {
      const caller = this.caller(exchange)
      exchange.body(max_request_body_size, body => {
        if (body === null) exchange.reply(413, caller.head, '')
        else this.begin(exchange, body.toString(), caller)
      })
    })
  }

  /** @param {import('../../protocol/contract.js').Encoded} message */
  frame(message) {
    return lines(message)
  }
}
