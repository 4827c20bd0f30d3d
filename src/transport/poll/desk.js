import { answers, CallAsker } from './answer.js'
import { decodeCall } from './request.js'

/**
 * @typedef {import('./answer.js').Asker} Asker
 * @typedef {import('./request.js').PollRequest} PollRequest
 */

/**
 * Where the posts to the sessions of this worker are dealt with, wherever they came in.
 */
export class PollDesk {
  #transport

  /** @param {import('./transport.js').PollTransport} transport */
  constructor(transport) {
    this.#transport = transport
  }

  /**
   * @param {PollRequest} request
   * @param {Buffer} body valid during the call
   * @param {Asker} asker
   */
  take(request, body, asker) {
    const mailbox = this.#transport.find(request.session)
    if (mailbox === undefined) asker.give(answers.unknown)
    else this.deal(mailbox, request, body, asker)
  }

  /**
   * @param {import('./mailbox.js').Mailbox} mailbox
   * @param {PollRequest} request
   * @param {Buffer} body valid during the call
   * @param {Asker} asker
   */
  deal(mailbox, request, body, asker) {
    const { ack, send, close, timeout } = request
    const refusal = this.#refusal(mailbox, request, body)
    if (refusal !== null) return asker.give(refusal)
    if (ack > mailbox.acked) mailbox.acknowledge(ack)
    if (body.length > 0 && (send === 0 || send > mailbox.taken)) mailbox.session.receive(body)
    if (send > mailbox.taken) mailbox.taken = send
    if (close) this.#transport.leave(mailbox)
    if (close || ack < 0) asker.give(answers.taken)
    else this.#transport.ask(mailbox, asker, timeout)
  }

  /**
   * @param {import('./mailbox.js').Mailbox} mailbox
   * @param {PollRequest} request
   * @param {Buffer} body
   * @returns {import('./answer.js').Answer | null} null: nothing is wrong with it
   */
  #refusal({ acked, given, taken, farewell }, { ack, send, close }, body) {
    if (ack > given) return answers.tooHigh
    // What was between may have been dropped.
    if (farewell !== null) return ack < 0 ? answers.ended : null
    if (ack >= 0 && ack < acked) return answers.tooLow
    if (send > taken + 1) return answers.gap
    if (send > 0 && body.length === 0 && !close) return answers.empty
    return null
  }

  /** @type {import('../../broker/contract.js').BrokerEvents['called']} */
  called(call, answer) {
    const { request, worker, poll, body } = decodeCall(call)
    if (body !== null) return this.take(request, body, new CallAsker(answer, worker, poll))
    const mailbox = this.#transport.find(request.session)
    if (mailbox?.asker?.is(worker, poll)) this.#transport.abandon(mailbox, mailbox.asker)
  }
}
