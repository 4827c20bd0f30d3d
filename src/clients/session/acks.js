// Answers of clients to requests of the server API (docs/access.md). A worker registers the sessions of a request, sends
// them its message, and hands their answers to the worker that has the call:
//
//   call (backends/api/requests.js)                    each worker
//     survey: id, target  -------------------------->  registers its sessions
//     pull: id, batches received, message  --------->  sends the message; holds the pull ...
//           <------------------ answers, gone, open    ... until clients answer or leave
//     pull: id, batches received  ------------------>
//     end: id  ------------------------------------->  forgets the request
//
// A batch is kept until the next pull confirms it. Without `end`, a registration ends by itself.

import { errors } from '../../base/errors.js'
import { Timer } from '../../base/timers.js'
import { reaches } from '../../channels/broker/target.js'
import { decodeBase64 } from '../protocol/payload.js'
import { isObject, rawMember, singleLine } from '../protocol/raw-json.js'

/** @import { Target } from '../../channels/broker/target.js' */
/** @import { Codec, Encoded } from '../protocol/contract.js' */
/** @import { WorkerContext } from './context.js' */
/** @import { Session } from './session.js' */

/** RPC method of an answer. */
export const ACK = '$ack'
/** Tag of a publication that asks for answers, with the id of the request. */
export const ACK_TAG = '$ack'
/** Tag with the method of the request, if it has one. */
export const METHOD_TAG = '$method'

/** Maximum answer of a client, bytes. */
const MAX_ANSWER = 64 * 1024
/** Maximum answers of one request, bytes; and of all requests of a process. */
export const MAX_ANSWERS = 16 * 1024 * 1024
const MAX_ALL_ANSWERS = 64 * 1024 * 1024
/** Bytes of answers in one batch, above which the rest follows in the next one. */
const BATCH_BYTES = 256 * 1024
/** Clients in one batch. */
const BATCH_COUNT = 2000
/** Maximum unanswered messages of a worker. */
const MAX_OPEN = 200_000
/** Time from the survey to the first pull, ms: surveys take up to 5 s. */
const SEND_TIMEOUT = 7000
/** A registration outlives its request by this time, ms. */
const GRACE = 1000

/** Bytes of the answers held by a process. */
export class AnswerBudget {
  #used = 0

  /** @param {number} bytes @param {number} own bytes held by the request @returns {boolean} false: over a limit */
  take(bytes, own) {
    if (own + bytes > MAX_ANSWERS || this.#used + bytes > MAX_ALL_ANSWERS) return false
    this.#used += bytes
    return true
  }

  /** @param {number} bytes */
  release(bytes) {
    this.#used -= bytes
  }
}

/** @typedef {(bytes: string) => void} Answer to a call of another worker */

/**
 * `text`: members of the answer as JSON text; null: dropped, because of its size.
 * @typedef {{client: string, user: string, text: string | null}} ClientAnswer
 */

/** A request in this worker. */
class Registration extends Timer {
  /** Sessions that have neither answered nor left. @type {Set<Session>} */
  open
  gone = 0
  sent = false
  bytes = 0
  /** Not in a batch yet. @type {ClientAnswer[]} */
  answers = []
  /** Number of the last batch, and its text. */
  batch = 0
  batchText = ''
  /** `gone` in the last batch. */
  reported = 0
  /** The pull that waits. @type {Answer | null} */
  pull = null
  flushing = false
  #owner

  /** @param {Acks} owner @param {string} id @param {Session[]} sessions */
  constructor(owner, id, sessions) {
    super()
    this.#owner = owner
    this.id = id
    this.open = new Set(sessions)
  }

  onTimer() {
    this.#owner.end(this.id)
  }

  /** Whether a batch would say anything new. */
  get news() {
    return this.answers.length > 0 || this.gone > this.reported
  }

  /** Answers the waiting pull at the end of the turn, with all answers of the turn. */
  flushSoon() {
    if (this.pull === null || this.flushing) return
    this.flushing = true
    setImmediate(() => {
      this.flushing = false
      if (this.pull !== null && this.news) this.#flush()
    })
  }

  /** @param {number} received number of the last batch that has arrived @param {Answer} pull */
  pulled(received, pull) {
    // The former one was lost.
    this.pull?.('')
    this.pull = null
    if (received < this.batch) return pull(this.batchText)
    this.pull = pull
    if (this.news) this.#flush()
  }

  #flush() {
    const { pull, gone } = this
    const heads = []
    const texts = []
    let bytes = 0
    for (const { client, user, text } of this.answers) {
      if (bytes > BATCH_BYTES || heads.length === BATCH_COUNT) break
      heads.push([client, user, text === null ? -1 : text.length])
      if (text !== null) texts.push(text)
      bytes += text?.length ?? 0
    }
    this.answers.splice(0, heads.length)
    this.batch++
    this.reported = gone
    const head = { batch: this.batch, gone, answers: heads }
    this.batchText = `${JSON.stringify(head)}\n${texts.join('')}`
    this.pull = null
    pull?.(this.batchText)
  }
}

/**
 * What a request is for: one of `client`, `user`, `session` and `channel`. `tags`, `only`: of its publication.
 * @typedef {object} AckTarget
 * @property {string} [client] @property {string} [user] @property {string} [session] @property {string} [channel]
 * @property {Record<string, string> | null} [tags] @property {Target | null} [only]
 *
 * @typedef {AckTarget & {id: string, timeout: number, maxTargets: number, maxPending: number}} AckSurvey
 * @typedef {{node: string, worker: number, count: number}} Registered `count`: of sessions; -1: over a limit
 * @typedef {{op: 'pull' | 'end', id: string, received?: number, timeout?: number, push?: string}} AckCall `push`: data
 *   of the message as JSON text, with the first pull; without it, a publication has the message
 */

export class Acks {
  /** @type {Map<string, Registration>} by id of the request */
  #registrations = new Map()
  /** Those of each session that has not answered. @type {Map<Session, Registration | Set<Registration>>} */
  #bySession = new Map()
  #open = 0
  #context
  #budget = new AnswerBudget()

  /** @param {() => WorkerContext} context */
  constructor(context) {
    this.#context = context
  }

  get size() {
    return this.#registrations.size
  }

  /** Registers the sessions of a request. Nothing is sent yet. @param {AckSurvey} survey @returns {Registered} */
  register({ id, maxTargets, maxPending, timeout, ...target }) {
    const { node, worker, timers, clock } = this.#context()
    const sessions = this.#find(target)
    const count = sessions.length
    if (count > maxTargets || this.#open + count > MAX_OPEN) return { node, worker, count: -1 }
    if (count === 0) return { node, worker, count }
    if (this.#registrations.size >= maxPending) return { node, worker, count: -1 }
    const registration = new Registration(this, id, sessions)
    this.#registrations.set(id, registration)
    this.#open += count
    for (const session of sessions) {
      const own = this.#bySession.get(session)
      if (own === undefined) this.#bySession.set(session, registration)
      else if (own instanceof Set) own.add(registration)
      else this.#bySession.set(session, new Set([own, registration]))
    }
    timers.schedule(registration, clock() + Math.max(SEND_TIMEOUT, timeout + GRACE))
    return { node, worker, count }
  }

  /** @param {AckTarget} target @returns {Session[]} connected sessions that can answer */
  #find({ client, user, session: sessionId, channel, tags = null, only = null }) {
    const { sessions, hub } = this.#context()
    const answers = (/** @type {Session} */ session) => !session.codec.unidirectional
    if (user) return sessions.of(user, {}).filter(answers)
    if (sessionId) {
      const session = sessions.find(sessionId)
      return session?.connected && answers(session) ? [session] : []
    }
    /** @type {Session[]} */
    const found = []
    if (client) {
      sessions.forEach(session => {
        if (session.id === client && answers(session)) found.push(session)
      })
    } else if (channel && hub.channels.has(channel)) {
      sessions.forEach(session => {
        const filter = session.subscription(channel)?.cohort.filter
        if (filter === undefined || !answers(session)) return
        if (only !== null && !reaches(only, session.user, session.id)) return
        if (filter === null || filter.matches(tags)) found.push(session)
      })
    }
    return found
  }

  /** Handles a call of the worker that has the request. @param {AckCall} call @param {Answer} answer */
  called({ op, id, received = 0, timeout = 0, push }, answer) {
    const registration = this.#registrations.get(id)
    if (op === 'end' || registration === undefined) {
      this.end(id)
      return answer('')
    }
    if (!registration.sent) {
      registration.sent = true
      const { timers, clock } = this.#context()
      timers.cancel(registration)
      timers.schedule(registration, clock() + timeout + GRACE)
      if (push !== undefined) this.#send([...registration.open], push)
    }
    registration.pulled(received, answer)
  }

  /** @param {Session[]} sessions @param {string} push JSON text */
  #send(sessions, push) {
    /** Encoded once per codec. @type {Map<Codec, Encoded>} */
    const messages = new Map()
    this.#context().sessions.visitInSlices(sessions, session => {
      if (session.closed) return
      const { codec } = session
      let message = messages.get(codec)
      if (message === undefined) messages.set(codec, (message = codec.message(push)))
      session.send(message)
    })
  }

  /**
   * Takes the answer of a client.
   * @param {Session} session @param {string | Buffer | undefined} data of the RPC
   * @throws {ReplyError} 107 for a malformed answer, 104 for one that is not expected from this client
   */
  answer(session, data) {
    const { traffic } = this.#context()
    try {
      this.#take(session, data)
    } catch (error) {
      traffic.add('acks', error === errors.notFound ? 'unexpected' : 'invalid')
      throw error
    }
    traffic.add('acks', 'accepted')
  }

  /** @param {Session} session @param {string | Buffer | undefined} data */
  #take(session, data = '') {
    const bytes = typeof data === 'string' ? Buffer.byteLength(data) : data.length
    if (bytes > MAX_ANSWER) throw errors.badRequest
    const { id, text } = readAnswer(data.toString())
    const registration = this.#registrations.get(id)
    if (!registration?.open.delete(session)) throw errors.notFound
    this.#settled(session, registration)
    const fits = this.#budget.take(bytes, registration.bytes)
    if (fits) registration.bytes += bytes
    registration.answers.push({ client: session.id, user: session.user, text: fits ? text : null })
    registration.flushSoon()
  }

  /** @param {Session} session @param {Registration} registration that no longer waits for it */
  #settled(session, registration) {
    this.#open--
    const own = this.#bySession.get(session)
    if (own instanceof Set) {
      own.delete(registration)
      if (own.size > 0) return
    }
    this.#bySession.delete(session)
  }

  /** A session has ended: it no longer answers. @param {Session} session */
  ended(session) {
    const own = this.#bySession.get(session)
    if (own === undefined) return
    this.#bySession.delete(session)
    for (const registration of own instanceof Set ? own : [own]) {
      this.#open--
      registration.open.delete(session)
      registration.gone++
      registration.flushSoon()
    }
  }

  /** Forgets a request: later answers are refused. @param {string} id */
  end(id) {
    const registration = this.#registrations.get(id)
    if (registration === undefined) return
    this.#registrations.delete(id)
    this.#context().timers.cancel(registration)
    for (const session of registration.open) this.#settled(session, registration)
    this.#budget.release(registration.bytes)
    registration.pull?.('')
    registration.pull = null
  }
}

/** @param {string} text @returns {any} @throws {ReplyError} 107 */
function parse(text) {
  try {
    return JSON.parse(text)
  } catch {
    throw errors.badRequest
  }
}

/**
 * @param {string} given `{"id", "data" | "b64data" | "error": {"code", "message"}}`; the last three may be absent
 * @returns {{id: string, text: string}} `text`: members of the answer, each after a comma
 * @throws {ReplyError} 107
 */
function readAnswer(given) {
  const answer = parse(given)
  if (!isObject(answer) || typeof answer.id !== 'string') throw errors.badRequest
  const { id, error, b64data } = answer
  const kinds = ['data', 'b64data', 'error'].filter(name =>
    name === 'data' ? Object.hasOwn(answer, name) : (answer[name] ?? null) !== null,
  )
  if (kinds.length > 1) throw errors.badRequest
  switch (kinds[0]) {
    case 'data':
      return { id, text: `,"data":${singleLine(/** @type {string} */ (rawMember(given, 'data')))}` }
    case 'b64data':
      if (typeof b64data !== 'string' || decodeBase64(b64data) === undefined) throw errors.badRequest
      return { id, text: `,"b64data":${JSON.stringify(b64data)}` }
    case 'error':
      return { id, text: `,"error":${errorText(error)}` }
    default:
      return { id, text: '' }
  }
}

/** @param {any} error @returns {string} @throws {ReplyError} 107 */
function errorText(error) {
  if (!isObject(error)) throw errors.badRequest
  const { code = 0, message = '' } = error
  if (!Number.isSafeInteger(code) || typeof message !== 'string') throw errors.badRequest
  return JSON.stringify({ code, message })
}

/**
 * @param {Buffer} bytes of a batch
 * @returns {{batch: number, gone: number, answers: ClientAnswer[]}} `gone`: so far
 */
export function readBatch(bytes) {
  const whole = bytes.toString()
  const end = whole.indexOf('\n')
  const { answers, ...head } = JSON.parse(whole.slice(0, end))
  let at = end + 1
  return {
    ...head,
    answers: answers.map((/** @type {[string, string, number]} */ [client, user, length]) => {
      if (length < 0) return { client, user, text: null }
      at += length
      return { client, user, text: whole.slice(at - length, at) }
    }),
  }
}
