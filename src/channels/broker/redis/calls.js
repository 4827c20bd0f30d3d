import { errors } from '../../../base/errors.js'
import { encode, Kind } from './inboxes.js'

/** @import { CallDone } from '../contract.js' */
/** @import { ControlParts } from './control.js' */

const NOTHING = Buffer.alloc(0)
/** Call number if no response is expected. */
const NO_NUMBER = 0

/**
 * Calls between workers of different nodes, over messages that may be lost.
 *
 *   caller -- CALL --> worker.<callee>
 *   worker.<caller> <-- ANSWER -- callee
 *
 * After a worker reconnects, its callers query which of their calls it knows: calls in transit were lost, received ones
 * will still complete.
 */
export class RedisCalls {
  /** @type {Map<number, {uid: string, done: CallDone}>} call number -> callee */
  #pending = new Map()
  #last = NO_NUMBER
  /** @type {Map<string, Set<number>>} caller -> numbers of its calls pending in this worker */
  #unanswered = new Map()
  #parts

  /** @param {Pick<ControlParts, 'inboxes' | 'uid' | 'events' | 'log'>} parts */
  constructor(parts) {
    this.#parts = parts
  }

  /** @param {string} callee @param {string | Buffer} request @param {CallDone | null} done */
  call(callee, request, done) {
    const { inboxes, uid } = this.#parts
    const number = done === null ? NO_NUMBER : ++this.#last
    if (done !== null) this.#pending.set(number, { uid: callee, done })
    inboxes.send(callee, encode(Kind.CALL, [uid, number], request), (error, receivers) => {
      // No receiver: the callee is reconnecting, or just exited.
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

  /** Fails a call without response. @param {number} number */
  failed(number) {
    this.#finish(number, errors.internal, NOTHING)
  }

  /** Call after this worker was unreachable. */
  failAll() {
    for (const number of [...this.#pending.keys()]) this.failed(number)
  }

  /** @param {string} uid @returns {number[]} numbers of this worker's calls to that worker */
  #pendingTo(uid) {
    return [...this.#pending].filter(([, call]) => call.uid === uid).map(([number]) => number)
  }

  /** Call when a worker is reachable (again). @param {string} uid */
  workerUp(uid) {
    const numbers = this.#pendingTo(uid)
    if (numbers.length === 0) return
    const probe = encode(Kind.CALL_PROBE, [this.#parts.uid], JSON.stringify(numbers))
    this.#parts.inboxes.reply(uid, probe, probe)
  }

  /** Call when a worker has exited. @param {string} uid */
  removeWorker(uid) {
    this.#unanswered.delete(uid)
    for (const number of this.#pendingTo(uid)) this.#finish(number, errors.notFound, NOTHING)
  }

  /** Receives a call of another worker. @param {string} caller @param {number} number @param {Buffer} request */
  called(caller, number, request) {
    const { inboxes, events, log } = this.#parts
    if (number !== NO_NUMBER) {
      const unanswered = this.#unanswered.get(caller)
      if (unanswered) unanswered.add(number)
      else this.#unanswered.set(caller, new Set([number]))
    }
    try {
      events.called(request, bytes => {
        if (!this.#forget(caller, number)) return
        const failed = encode(Kind.CALL_FAILED, [number])
        inboxes.reply(caller, encode(Kind.CALL_ANSWER, [number], bytes), failed)
      })
    } catch (error) {
      log.error({ err: error }, 'call failed')
      this.#refuse(caller, number)
    }
  }

  /** @param {string} caller @param {number} number @returns {boolean} whether a response is still expected */
  #forget(caller, number) {
    const unanswered = this.#unanswered.get(caller)
    if (!unanswered?.delete(number)) return false
    if (unanswered.size === 0) this.#unanswered.delete(caller)
    return true
  }

  /** @param {string} caller @param {number} number */
  #refuse(caller, number) {
    this.#forget(caller, number)
    const failed = encode(Kind.CALL_FAILED, [number])
    if (number !== NO_NUMBER) this.#parts.inboxes.reply(caller, failed, failed)
  }

  /** Refuses the calls of a caller that were lost. @param {string} caller @param {number[]} numbers */
  probed(caller, numbers) {
    const unanswered = this.#unanswered.get(caller)
    for (const number of numbers) if (!unanswered?.has(number)) this.#refuse(caller, number)
  }
}
