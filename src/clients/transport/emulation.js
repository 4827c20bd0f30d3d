import { errors } from '../../base/errors.js'
import { readEmulationRequest } from '../protocol/protobuf-commands.js'
import { isObject } from '../protocol/raw-json.js'
import { workerOf } from '../session/ids.js'
import { Call } from './calls.js'

/** @import { TransportParts } from './index.js' */

const SESSION_ID_SIZE = 36
const NOTHING = Buffer.alloc(0)

/**
 * The endpoint for the commands of clients of one-directional transports (client protocol). Any worker of
 * any node accepts the POST and passes it to the worker of the session.
 */
export class Emulation {
  #context
  #server
  #cors
  #calls

  /** @param {TransportParts} parts */
  constructor({ context, server, cors, calls }) {
    this.#context = context
    this.#server = server
    this.#cors = cors
    this.#calls = calls
  }

  mount() {
    const { handler_prefix, max_request_body_size } = this.#context.config.emulation
    this.#cors.post(this.#server, handler_prefix, exchange => {
      const headers = this.#cors.headers(exchange)
      const binary = exchange.header('content-type') === 'application/octet-stream'
      exchange.body(max_request_body_size, body => {
        if (body === null) return exchange.reply(413, headers, '')
        const request = binary ? readEmulationRequest(body) : readJson(body)
        if (!request) return exchange.reply(400, headers, 'invalid request body')
        this.#pass(request, status => exchange.reply(status, headers, ''))
      })
    })
    this.#calls.on(Call.EMULATION, (request, answer) => {
      const sessionId = request.toString('latin1', 0, SESSION_ID_SIZE)
      this.#receive(sessionId, request.subarray(SESSION_ID_SIZE))
      answer('')
    })
  }

  /**
   * @param {{node: string, session: string, data: Uint8Array}} request
   * @param {(status: number) => void} done 404: unknown node; 503: the worker of the session cannot be reached, and may
   *   not have got it. An unknown session is no error
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
    // An invalid id is sent to another node too: only its answer shows whether the node exists.
    const id = owner < 0 ? ''.padEnd(SESSION_ID_SIZE) : session
    const head = Buffer.from(`${String.fromCharCode(Call.EMULATION)}${id}`, 'latin1')
    const request = Buffer.concat([head, data])
    // Answer after the other worker has the data: backpressure for a client that posts faster.
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

/**
 * @param {Buffer} body
 * @returns {{node: string, session: string, data: Uint8Array} | undefined} undefined if it is no JSON object
 */
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
  // Without a data string the request is dropped, as in the reference server.
  if (typeof data !== 'string') return { node: text(node), session: '', data: NOTHING }
  return { node: text(node), session: text(session), data: Buffer.from(data) }
}
