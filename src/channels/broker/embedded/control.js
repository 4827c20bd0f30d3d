// Control between the workers of a node. For calls and users in the Redis engine see redis/calls.js and redis/users.js.

import { errors } from '../../../base/errors.js'
import { answerSurvey } from '../surveys.js'
import { Frame } from './frames.js'

/** @import { Log } from '../../../base/log.js' */
/** @import { BrokerEvents, Control } from '../contract.js' */
/** @import { Bus } from './client.js' */
/** @import { FrameWriter } from './frames.js' */
/** @import { FrameCursor } from './records.js' */

/**
 * A worker. `worker`: its number, -1: not callable; `number`: unique among all links; `calls`: made so far.
 * @typedef {{writer: FrameWriter, worker: number, number: number, calls: number}} CallLink
 */

const NOTHING = Buffer.alloc(0)
/** Request number if no response is expected. */
export const NO_REQUEST = 0xffffffff

/**
 * Calls between workers, in the primary, which forwards frames and stores none. When a worker exits, every other one
 * receives the number of its calls forwarded so far, which shows which are lost.
 *
 *   caller -- CALL --> host -- CALLED --> worker
 *   caller <- ANSWER - host <- RETURN --- worker
 *   caller <- FAILED - host <- REFUSE --- worker
 *   caller <-- GONE -- host <-- (closed)
 * @template {CallLink} L
 */
export class Calls {
  /** @type {Map<number, L>} worker number -> link */
  #workers = new Map()
  /** @type {Map<number, L>} link number -> link */
  #links = new Map()
  #sent

  /** @param {(link: L) => void} sent ends a frame to a worker */
  constructor(sent) {
    this.#sent = sent
  }

  /** @param {L} link */
  addLink(link) {
    this.#links.set(link.number, link)
    if (link.worker < 0) return
    // The previous link may be dead before its socket closes.
    if (this.#workers.has(link.worker)) this.#announceGone(link.worker)
    this.#workers.set(link.worker, link)
  }

  /** @param {L} link */
  removeLink(link) {
    this.#links.delete(link.number)
    if (this.#workers.get(link.worker) !== link) return
    this.#workers.delete(link.worker)
    this.#announceGone(link.worker)
  }

  /** @param {number} worker */
  #announceGone(worker) {
    for (const link of this.#links.values()) {
      link.writer.begin(Frame.GONE).u32(worker).f64(link.calls)
      this.#sent(link)
    }
  }

  /** @param {L} caller @param {FrameCursor} cursor */
  call(caller, cursor) {
    caller.calls++
    const request = cursor.u32()
    const target = this.#workers.get(cursor.u32())
    if (target !== undefined) {
      target.writer.begin(Frame.CALLED).u32(caller.number).u32(request)
      target.writer.raw(cursor.buffer, cursor.at, cursor.end)
      this.#sent(target)
    } else if (request !== NO_REQUEST) {
      caller.writer.begin(Frame.FAILED).u32(request).u32(errors.notFound.code)
      this.#sent(caller)
    }
  }

  /** @param {L} link @param {FrameCursor} cursor @param {number} type of the frame to the caller: ANSWER or FAILED */
  answer(link, cursor, type) {
    const caller = this.#links.get(cursor.u32())
    // Calls of a replaced link have already failed, and their numbers may be reused.
    if (caller === undefined || this.#workers.get(link.worker) !== link) return
    caller.writer.begin(type).raw(cursor.buffer, cursor.at, cursor.end)
    this.#sent(caller)
  }
}

/** Connections of each user over all workers; used only with client.user_connection_limit. @template L */
export class Users {
  /** @type {Map<string, number>} */
  #total = new Map()
  /** @type {Map<L, Map<string, number>>} */
  #byLink = new Map()

  /** @param {string} user @param {number} limit @param {L} link @returns {boolean} false: the limit is reached */
  claim(user, limit, link) {
    const total = this.#total.get(user) ?? 0
    if (total >= limit) return false
    this.#total.set(user, total + 1)
    let own = this.#byLink.get(link)
    if (!own) this.#byLink.set(link, (own = new Map()))
    own.set(user, (own.get(user) ?? 0) + 1)
    return true
  }

  /** @param {string} user @param {L} link */
  release(user, link) {
    const own = this.#byLink.get(link)
    if (!own?.has(user)) return
    this.#subtract(own, user, 1)
    this.#subtract(this.#total, user, 1)
  }

  /** @param {L} link */
  removeLink(link) {
    for (const [user, count] of this.#byLink.get(link) ?? []) this.#subtract(this.#total, user, count)
    this.#byLink.delete(link)
  }

  /** @param {Map<string, number>} counts @param {string} user @param {number} count */
  #subtract(counts, user, count) {
    const left = (counts.get(user) ?? 0) - count
    if (left > 0) counts.set(user, left)
    else counts.delete(user)
  }
}

/** Control in a worker of a single node. @implements {Control} */
export class LocalControl {
  /** @type {Map<number, {worker: number, request: number}>} serial number of a call -> callee and request number */
  #pending = new Map()
  #made = 0
  #bus
  #events
  #node
  #log

  /** @param {Bus} bus @param {BrokerEvents} events @param {string} node @param {Log} log */
  constructor(bus, events, node, log) {
    this.#bus = bus
    this.#events = events
    this.#node = node
    this.#log = log
  }

  start() {}
  close() {}

  nodes() {
    return 0
  }

  /** @type {Control['survey']} */
  survey(op, params) {
    return this.#bus.ask(Frame.SURVEY, [op, JSON.stringify(params)], cursor => JSON.parse(cursor.string()))
  }

  /** @type {Control['order']} */
  async order(op, params, claim) {
    if (!claim) return this.survey(op, params)
    // All workers of a machine share this clock.
    const time = Number(process.hrtime.bigint()) / 1e6 - performance.now() + claim.at
    await this.survey(op, { ...params, time })
    return [time]
  }

  /** @type {Control['call']} */
  call(node, worker, request, done) {
    if (node !== '' && node !== this.#node) {
      if (done) queueMicrotask(() => done(errors.notFound, NOTHING))
      return
    }
    const call = ++this.#made
    let number = NO_REQUEST
    if (done !== null) {
      number = this.#bus.number((error, cursor) => {
        this.#pending.delete(call)
        done(error, cursor === null ? NOTHING : cursor.buffer.subarray(cursor.at, cursor.end))
      })
      this.#pending.set(call, { worker, request: number })
    }
    this.#bus.writer.begin(Frame.CALL).u32(number).u32(worker).bare(request).end()
  }

  /** @type {Control['claimUser']} */
  claimUser(user, limit, done) {
    const writer = this.#bus.request(Frame.CLAIM_USER, (error, cursor) => done(error, cursor?.u8() === 1))
    writer.string(user).u32(limit).end()
  }

  /** @type {Control['releaseUser']} */
  releaseUser(user) {
    this.#bus.writer.begin(Frame.RELEASE_USER).string(user).end()
  }

  /** Fails the calls forwarded to a lost worker. @param {FrameCursor} cursor @returns {number} its number */
  gone(cursor) {
    const worker = cursor.u32()
    const forwarded = cursor.f64()
    for (const [call, pending] of this.#pending) {
      if (call > forwarded) break
      if (pending.worker === worker) this.#bus.answered(pending.request, errors.notFound, null)
    }
    return worker
  }

  /** Receives a call from another worker. @param {FrameCursor} cursor */
  called(cursor) {
    const caller = cursor.u32()
    const request = cursor.u32()
    // The caller may reuse its number after the first response.
    let open = request !== NO_REQUEST
    try {
      this.#events.called(cursor.buffer.subarray(cursor.at, cursor.end), bytes => {
        if (!open) return
        open = false
        this.#bus.writer.begin(Frame.RETURN).u32(caller).u32(request).bare(bytes).end()
      })
    } catch (error) {
      this.#log.error({ err: error }, 'call failed')
      if (open) this.#bus.writer.begin(Frame.REFUSE).u32(caller).u32(request).u32(errors.internal.code).end()
      open = false
    }
  }

  /** Handles a survey. @param {FrameCursor} cursor */
  question(cursor) {
    const survey = cursor.u32()
    const op = cursor.string()
    // The frame begins after the operation, which may write frames.
    answerSurvey(this.#events, this.#log, op, JSON.parse(cursor.string()), Infinity, answer =>
      this.#bus.writer.begin(Frame.SURVEY_ANSWER).u32(survey).string(answer).end(),
    )
  }
}
