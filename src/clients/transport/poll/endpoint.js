import { errors } from '../../../base/errors.js'
import { retryAfter } from '../../server/contract.js'
import { workerOf } from '../../session/ids.js'
import { Call } from '../calls.js'
import { requestHeaders, trustedUser } from '../http-request.js'
import { NO_CACHE } from '../origin.js'
import { answers, badRequest, decodeAnswer, HttpPoll, RemotePoll } from './answer.js'
import { decodeCall, encodeCall, readRequest, sessionName } from './request.js'
import { PollTransport } from './transport.js'

/** @import { BrokerEvents } from '../../../channels/broker/contract.js' */
/** @import { Exchange } from '../../server/contract.js' */
/** @import { TransportParts } from '../index.js' */
/** @import { Answer, WaitingPoll } from './answer.js' */
/** @import { PollQueue } from './queue.js' */
/** @import { PollRequest } from './request.js' */

/** @typedef {Readonly<Record<string, string>>} Head */
/** @typedef {HttpPoll<{request: PollRequest, owner: number, poll: number}>} ForwardedPoll to another worker */

const PROTOBUF = 'application/octet-stream'
const EXPOSED = 'Halley-Session, Halley-Seq, Halley-Close'

/** Endpoint of two-way long-poll (docs/long-poll.md). Any worker forwards a POST to the session's worker. */
export class PollEndpoint {
  #context
  #parts
  #transport
  #lastPoll = 0
  /** @type {Set<ForwardedPoll>} */
  #forwarded = new Set()
  /** The worker shuts down: forwarded polls do not wait. */
  #draining = false
  #left = (/** @type {HttpPoll<PollQueue>} */ { subject }) => this.#transport.leave(subject)
  #abandoned = (/** @type {HttpPoll<PollQueue>} */ waitingPoll) =>
    this.#transport.abandon(waitingPoll.subject, waitingPoll)
  #abandonedForwarded = (/** @type {ForwardedPoll} */ waitingPoll) => {
    const { request, owner, poll } = waitingPoll.subject
    const { broker, worker } = this.#context
    this.#forwarded.delete(waitingPoll)
    broker.control.call(request.node, owner, encodeCall(request, worker, poll, null), null)
  }

  /** @param {TransportParts} parts */
  constructor(parts) {
    this.#context = parts.context
    this.#parts = parts
    this.#transport = new PollTransport(parts.context, parts.fanout)
  }

  mount() {
    const { server, cors, calls } = this.#parts
    cors.post(server, this.#context.config.poll.handler_prefix, exchange => this.#request(exchange))
    calls.on(Call.POLL, (call, answer) => this.#onCall(call, answer))
  }

  backlog() {
    return this.#transport.backlog()
  }

  /** @returns {import('../index.js').Clients} */
  drain() {
    this.#draining = true
    return {
      clients: [...this.#forwarded],
      end: waitingPoll => this.#release(waitingPoll),
      left: () => this.#forwarded.size,
    }
  }

  /** Sends an empty response: the client polls another worker. @param {ForwardedPoll} waitingPoll */
  #release(waitingPoll) {
    if (!this.#forwarded.has(waitingPoll)) return
    waitingPoll.abandoned()
    waitingPoll.answer({ ...answers.accepted, status: 200, seq: waitingPoll.subject.request.ack })
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
    const headers = opens ? requestHeaders(exchange, this.#context) : null
    exchange.body(poll.max_request_body_size, body => {
      if (body === null) this.#refuse(exchange, head, answers.tooLong)
      else if (opens) this.#open(exchange, head, request, binary, { user, headers }, body)
      else this.#pass(exchange, head, request, body)
    })
  }

  /** @param {Exchange} exchange @returns {Head} */
  #head(exchange) {
    const head = this.#parts.cors.headers(exchange, NO_CACHE)
    return head === NO_CACHE ? head : { ...head, 'Access-Control-Expose-Headers': EXPOSED }
  }

  /** @param {Exchange} exchange @param {Head} head @param {Answer} refusal */
  #refuse(exchange, head, { status, body }) {
    exchange.reply(status, head, body)
  }

  /**
   * @param {Exchange} exchange @param {Head} head @param {PollRequest} request @param {boolean} binary
   * @param {{user: string, headers: readonly string[] | null}} client @param {Buffer} body
   */
  #open(exchange, head, { timeout }, binary, client, body) {
    if (!this.#parts.admission.admits(exchange))
      return this.#refuse(exchange, { ...head, ...retryAfter() }, answers.full)
    const { codecs, node } = this.#context
    const queue = this.#transport.open(binary ? codecs.protobuf : codecs.json, client)
    const name = sessionName(queue.session.sessionId, node)
    // A client that disconnects before the response has no session id.
    const waitingPoll = new HttpPoll(exchange, head, name, queue, this.#left)
    this.#transport.opening = waitingPoll
    if (body.length > 0) queue.session.receive(body)
    this.#transport.opening = null
    this.#transport.poll(queue, waitingPoll, body.length > 0 ? timeout : 0)
  }

  /** @param {Exchange} exchange @param {Head} head @param {PollRequest} request @param {Buffer} body */
  #pass(exchange, head, request, body) {
    const { broker, worker, node } = this.#context
    const owner = workerOf(request.session)
    if (owner < 0) return this.#refuse(exchange, head, answers.unknown)
    if (owner === worker && (request.node === '' || request.node === node)) {
      const queue = this.#transport.find(request.session)
      if (queue === undefined) return this.#refuse(exchange, head, answers.unknown)
      return this.#handle(queue, request, body, new HttpPoll(exchange, head, '', queue, this.#abandoned))
    }
    const poll = (this.#lastPoll = (this.#lastPoll + 1) >>> 0)
    if (this.#draining) request.timeout = 0
    const waitingPoll = new HttpPoll(exchange, head, '', { request, owner, poll }, this.#abandonedForwarded)
    if (request.ack >= 0) this.#forwarded.add(waitingPoll)
    broker.control.call(request.node, owner, encodeCall(request, worker, poll, body), (error, answer) => {
      if (request.ack >= 0 && !this.#forwarded.delete(waitingPoll)) return
      if (error) waitingPoll.answer(error === errors.notFound ? answers.unknown : answers.noBroker)
      else waitingPoll.answer(decodeAnswer(answer))
    })
  }

  /**
   * @param {PollQueue} queue @param {PollRequest} request @param {Buffer} body valid during the call
   * @param {WaitingPoll} waitingPoll
   */
  #handle(queue, request, body, waitingPoll) {
    const { ack, send, close, timeout } = request
    const refusal = this.#refusal(queue, request, body)
    if (refusal !== null) return waitingPoll.answer(refusal)
    if (ack > queue.acked) queue.acknowledge(ack)
    if (body.length > 0 && (send === 0 || send > queue.received)) queue.session.receive(body)
    if (send > queue.received) queue.received = send
    if (close) this.#transport.leave(queue)
    if (close || ack < 0) waitingPoll.answer(answers.accepted)
    else this.#transport.poll(queue, waitingPoll, timeout)
  }

  /** @param {PollQueue} queue @param {PollRequest} request @param {Buffer} body @returns {Answer | null} */
  #refusal({ acked, sent, received, closeNotice, full }, { ack, send, close }, body) {
    if (ack > sent) return answers.tooHigh
    // Messages before the close may have been dropped.
    if (closeNotice !== null || full) return ack < 0 ? answers.ended : null
    if (ack >= 0 && ack < acked) return answers.tooLow
    if (send > received + 1) return answers.gap
    if (send > 0 && body.length === 0 && !close) return answers.empty
    return null
  }

  /** @type {BrokerEvents['called']} */
  #onCall(call, answer) {
    const { request, worker, poll, body } = decodeCall(call)
    const queue = this.#transport.find(request.session)
    if (body !== null) {
      const waitingPoll = new RemotePoll(answer, worker, poll)
      if (queue === undefined) waitingPoll.answer(answers.unknown)
      else this.#handle(queue, request, body, waitingPoll)
      return
    }
    if (!queue?.waitingPoll?.is(worker, poll)) return
    const { waitingPoll } = queue
    this.#transport.abandon(queue, waitingPoll)
    // Frees the call in the other worker.
    waitingPoll.answer(answers.accepted)
  }
}
