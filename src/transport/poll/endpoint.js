import { errors } from '../../errors.js'
import { workerOf } from '../../session/ids.js'
import { Call } from '../calls.js'
import { trustedUser } from '../http-request.js'
import { NO_CACHE } from '../origin.js'
import { answers, badRequest, decodeAnswer, HttpAsker } from './answer.js'
import { PollDesk } from './desk.js'
import { encodeCall, readRequest, sessionName } from './request.js'
import { PollTransport } from './transport.js'

/**
 * @typedef {import('../../server/contract.js').Exchange} Exchange
 * @typedef {import('./request.js').PollRequest} PollRequest
 * @typedef {import('./mailbox.js').Mailbox} Mailbox
 * @typedef {Readonly<Record<string, string>>} Head
 * @typedef {{request: PollRequest, owner: number, poll: number}} Elsewhere a poll that another worker was asked for
 */

const PROTOBUF = 'application/octet-stream'
const EXPOSED = 'Halley-Session, Halley-Seq, Halley-Close'

/**
 * The endpoint of two-way long-poll (docs/long-poll.md). Any worker takes any post: where the session lives on another one, it is asked.
 */
export class PollEndpoint {
  #context
  #server
  #cors
  #admission
  #calls
  #transport
  #desk
  #lastPoll = 0
  #left = (/** @type {Mailbox} */ mailbox) => this.#transport.leave(mailbox)
  #abandoned = (/** @type {Mailbox} */ mailbox, /** @type {HttpAsker<Mailbox>} */ asker) =>
    this.#transport.abandon(mailbox, asker)
  #abandonedElsewhere = (/** @type {Elsewhere} */ { request, owner, poll }) =>
    this.#context.broker.control.call(
      request.node,
      owner,
      encodeCall(request, this.#context.worker, poll, null),
      null,
    )

  /**
   * @param {object} parts
   * @param {import('../../worker/context.js').WorkerContext} parts.context
   * @param {import('../../server/contract.js').SocketServer} parts.server
   * @param {import('../fanout.js').Fanout} parts.fanout
   * @param {import('../origin.js').Cors} parts.cors
   * @param {import('../admission.js').Admission} parts.admission
   * @param {import('../calls.js').Calls} parts.calls
   */
  constructor({ context, server, fanout, cors, admission, calls }) {
    this.#context = context
    this.#server = server
    this.#cors = cors
    this.#admission = admission
    this.#calls = calls
    this.#transport = new PollTransport(context, fanout)
    this.#desk = new PollDesk(this.#transport)
  }

  /** Takes the path that the configuration names. */
  mount() {
    this.#cors.post(this.#server, this.#context.config.poll.handler_prefix, exchange =>
      this.#request(exchange),
    )
    this.#calls.on(Call.POLL, (call, answer) => this.#desk.called(call, answer))
  }

  outbox() {
    return this.#transport.outbox()
  }

  /** @param {Exchange} exchange */
  #request(exchange) {
    const { poll } = this.#context.config
    const head = this.#head(exchange)
    const request = readRequest(exchange.query, poll.timeout)
    if (typeof request === 'string') return this.#refuse(exchange, head, badRequest(request))
    const opens = request.session === ''
    const binary = opens && exchange.header('content-type') === PROTOBUF
    const user = opens ? trustedUser(exchange, this.#context.config) : ''
    exchange.body(poll.max_request_body_size, body => {
      if (body === null) this.#refuse(exchange, head, answers.tooLong)
      else if (opens) this.#open(exchange, head, request, binary, user, body)
      else this.#pass(exchange, head, request, body)
    })
  }

  /**
   * @param {Exchange} exchange
   * @returns {Head}
   */
  #head(exchange) {
    const head = this.#cors.headers(exchange, NO_CACHE)
    return head === NO_CACHE ? head : { ...head, 'Access-Control-Expose-Headers': EXPOSED }
  }

  /**
   * @param {Exchange} exchange
   * @param {Head} head
   * @param {import('./answer.js').Answer} refusal
   */
  #refuse(exchange, head, { status, body }) {
    exchange.reply(status, head, body)
  }

  /**
   * @param {Exchange} exchange
   * @param {Head} head
   * @param {PollRequest} request
   * @param {boolean} binary
   * @param {string} user
   * @param {Buffer} body
   */
  #open(exchange, head, { timeout }, binary, user, body) {
    if (!this.#admission.admits()) return this.#refuse(exchange, head, answers.full)
    const { codecs, node } = this.#context
    const mailbox = this.#transport.open(binary ? codecs.protobuf : codecs.json, user)
    const name = sessionName(mailbox.session.sessionId, node)
    // Without an answer nobody knows of the session.
    const asker = new HttpAsker(exchange, head, name, mailbox, this.#left)
    if (body.length > 0) mailbox.session.receive(body)
    this.#transport.ask(mailbox, asker, body.length > 0 ? timeout : 0)
  }

  /**
   * @param {Exchange} exchange
   * @param {Head} head
   * @param {PollRequest} request
   * @param {Buffer} body
   */
  #pass(exchange, head, request, body) {
    const { broker, worker, node } = this.#context
    const owner = workerOf(request.session)
    if (owner < 0) return this.#refuse(exchange, head, answers.unknown)
    if (owner === worker && (request.node === '' || request.node === node)) {
      const mailbox = this.#transport.find(request.session)
      if (mailbox === undefined) return this.#refuse(exchange, head, answers.unknown)
      return this.#desk.deal(
        mailbox,
        request,
        body,
        new HttpAsker(exchange, head, '', mailbox, this.#abandoned),
      )
    }
    const poll = (this.#lastPoll = (this.#lastPoll + 1) >>> 0)
    const asker = new HttpAsker(exchange, head, '', { request, owner, poll }, this.#abandonedElsewhere)
    broker.control.call(request.node, owner, encodeCall(request, worker, poll, body), (error, answer) => {
      if (error) asker.give(error === errors.notFound ? answers.unknown : answers.noBroker)
      else asker.give(decodeAnswer(answer))
    })
  }
}
