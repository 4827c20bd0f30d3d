import { errors } from '../../base/errors.js'
import { readEmulationRequest } from '../protocol/protobuf-commands.js'
import { isObject } from '../protocol/raw-json.js'
import { workerOf } from '../session/ids.js'
import { Call } from './calls.js'

/** @import { TransportParts } from './index.js' */

const SESSION_ID_SIZE = 36

/** POST endpoint for client commands on HTTP streaming and SSE. Any worker forwards them to the session's worker. */
export class Emulation {
  #context
  #parts

  /** @param {TransportParts} parts */
  constructor(parts) {
    this.#context = parts.context
    this.#parts = parts
  }

  mount() {
    const { handler_prefix, max_request_body_size } = this.#context.config.emulation
    const { server, cors, calls } = this.#parts
    cors.post(server, handler_prefix, exchange => {
      const headers = cors.headers(exchange)
      const binary = exchange.header('content-type') === 'application/octet-stream'
      exchange.body(max_request_body_size, body => {
        if (body === null) return exchange.reply(413, headers, '')
        const request = binary ? readEmulationRequest(body) : readJson(body)
        if (!request) return exchange.reply(400, headers, 'invalid request body')
        this.#pass(request, status => exchange.reply(status, headers, ''))
      })
    })
    calls.on(Call.EMULATION, (request, answer) => {
      const sessionId = request.toString('latin1', 0, SESSION_ID_SIZE)
      this.#receive(sessionId, request.subarray(SESSION_ID_SIZE))
      answer('')
    })
  }

  /**
   * @param {{node: string, session: string, data: Uint8Array}} request
   * @param {(status: number) => void} done 404: unknown node; 503: unreachable worker. Unknown sessions are ignored
   */
  #pass({ node, session, data }, done) {
    const { broker, worker, node: own } = this.#context
    const owner = workerOf(session)
    if (node === '') return done(404)
    if (node === own && owner === worker) {
      this.#receive(session, Buffer.from(data))
      return done(204)
    }
    if (node === own && owner < 0) return done(204)
    // Invalid ids are forwarded too: only the call detects an unknown node.
    const id = owner < 0 ? ''.padEnd(SESSION_ID_SIZE) : session
    const head = Buffer.from(`${String.fromCharCode(Call.EMULATION)}${id}`, 'latin1')
    const request = Buffer.concat([head, data])
    // Responds once the other worker has the data: backpressure for the client.
    broker.control.call(node, Math.max(owner, 0), request, error => {
      if (error === null || (error === errors.notFound && node === own)) done(204)
      else done(error === errors.notFound ? 404 : 503)
    })
  }

  /** @param {string} sessionId @param {Buffer} data framed commands, valid during the call */
  #receive(sessionId, data) {
    const session = this.#context.sessions.find(sessionId)
    if (session?.transport.emulated) session.receive(data)
  }
}

/** @param {Buffer} body @returns {{node: string, session: string, data: Uint8Array} | undefined} */
function readJson(body) {
  let request
  try {
    request = JSON.parse(body.toString())
  } catch {
    return undefined
  }
  if (!isObject(request)) return undefined
  const { node, session, data } = request
  const text = (/** @type {unknown} */ value) => (typeof value === 'string' ? value : '')
  // A request without a data string is dropped, as in the reference server.
  if (typeof data !== 'string') return { node: text(node), session: '', data: Buffer.alloc(0) }
  return { node: text(node), session: text(session), data: Buffer.from(data) }
}
