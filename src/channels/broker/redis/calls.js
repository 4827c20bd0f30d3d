// Calls over messages that may be lost. The embedded engine shares no part of it (embedded/control.js): its bus loses
// nothing, so a count of forwarded calls tells which ones a lost worker took, and answers use the request numbers of
// the bus; here the caller asks which of its calls have arrived.

import { errors } from '../../../base/errors.js'
import { encode, Kind } from './inboxes.js'

/** @typedef {import('../contract.js').CallDone} Done */

const NOTHING = Buffer.alloc(0)
/** In place of a call number: no answer is wanted. */
const NO_NUMBER = 0

/**
 * Calls between workers of different nodes.
 *
 *   caller -- CALL --> worker.<callee>
 *   worker.<caller> <-- ANSWER -- callee
 *
 * When a worker is back after a lost connection, its callers ask which of their calls it knows: calls in transit were
 * lost, received ones will still be answered.
 */
export class RedisCalls {
  /** @type {Map<number, {uid: string, done: Done}>} call number -> callee */
  #pending = new Map()
  #last = NO_NUMBER
  /** @type {Map<string, Set<number>>} caller -> numbers of its calls that this worker has not answered */
  #unanswered = new Map()
  #inboxes
  #uid
  #events
  #log

  /**
   * @param {object} parts @param {import('./inboxes.js').Inboxes} parts.inboxes @param {string} parts.uid
   * @param {import('../contract.js').BrokerEvents} parts.events @param {import('pino').Logger} parts.log
   */
  constructor({ inboxes, uid, events, log }) {
    this.#inboxes = inboxes
    this.#uid = uid
    this.#events = events
    this.#log = log
  }

  /** @param {string} uid @param {string | Buffer} request @param {Done | null} done */
  call(uid, request, done) {
    if (done === null) {
      return this.#inboxes.send(uid, encode(Kind.CALL, [this.#uid, NO_NUMBER], request), () => {})
    }
    const number = ++this.#last
    this.#pending.set(number, { uid, done })
    this.#inboxes.send(uid, encode(Kind.CALL, [this.#uid, number], request), (error, receivers) => {
      // No receiver: the callee is reconnecting, or has just ended.
      if (error || receivers === 0) this.failed(number)
    })
  }

  /** @param {number} number @param {Error | null} error @param {Buffer} answer */
  #finish(number, error, answer) {
    const pending = this.#pending.get(number)
    if (this.#pending.delete(number)) pending?.done(error, answer)
  }

  /** Finishes a call of this worker. @param {number} number @param {Buffer} answer */
  answered(number, answer) {
    this.#finish(number, null, answer)
  }

  /** Fails a call that will not be answered. @param {number} number */
  failed(number) {
    this.#finish(number, errors.internal, NOTHING)
  }

  /** Called when this worker was out of reach itself. */
  failAll() {
    for (const number of [...this.#pending.keys()]) this.failed(number)
  }

  /** @param {string} uid @returns {number[]} numbers of this worker's calls to that worker */
  #pendingTo(uid) {
    const numbers = []
    for (const [number, pending] of this.#pending) if (pending.uid === uid) numbers.push(number)
    return numbers
  }

  /** Called when a worker can be reached (again). @param {string} uid */
  workerUp(uid) {
    const numbers = this.#pendingTo(uid)
    if (numbers.length === 0) return
    const probe = encode(Kind.CALL_PROBE, [this.#uid], JSON.stringify(numbers))
    this.#inboxes.reply(uid, probe, probe)
  }

  /** Called when a worker has ended. @param {string} uid */
  removeWorker(uid) {
    this.#unanswered.delete(uid)
    for (const number of this.#pendingTo(uid)) this.#finish(number, errors.notFound, NOTHING)
  }

  /** Receives a call of another worker. @param {string} caller @param {number} number @param {Buffer} request */
  called(caller, number, request) {
    if (number !== NO_NUMBER) {
      const unanswered = this.#unanswered.get(caller)
      if (unanswered) unanswered.add(number)
      else this.#unanswered.set(caller, new Set([number]))
    }
    try {
      this.#events.called(request, bytes => this.#answer(caller, number, bytes))
    } catch (error) {
      this.#log.error({ err: error }, 'call failed')
      this.#refuse(caller, number)
    }
  }

  /** @param {string} caller @param {number} number @returns {boolean} whether an answer is still wanted */
  #forget(caller, number) {
    const unanswered = this.#unanswered.get(caller)
    if (!unanswered?.delete(number)) return false
    if (unanswered.size === 0) this.#unanswered.delete(caller)
    return true
  }

  /** @param {string} caller @param {number} number @param {string | Buffer} bytes */
  #answer(caller, number, bytes) {
    if (!this.#forget(caller, number)) return
    this.#inboxes.reply(caller, encode(Kind.CALL_ANSWER, [number], bytes), encode(Kind.CALL_FAILED, [number]))
  }

  /** @param {string} caller @param {number} number */
  #refuse(caller, number) {
    this.#forget(caller, number)
    const failed = encode(Kind.CALL_FAILED, [number])
    if (number !== NO_NUMBER) this.#inboxes.reply(caller, failed, failed)
  }

  /** Refuses the calls of a caller that were lost. @param {string} caller @param {number[]} numbers */
  probed(caller, numbers) {
    const unanswered = this.#unanswered.get(caller)
    for (const number of numbers) if (!unanswered?.has(number)) this.#refuse(caller, number)
  }
}
