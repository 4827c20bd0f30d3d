// Requests to clients: `request`, and `publish` with `ack`. For the protocol between workers see
// clients/session/acks.js.

import { randomBytes } from 'node:crypto'
import { errors, ReplyError } from '../../base/errors.js'
import { ACK_TAG, AnswerBudget, METHOD_TAG, readBatch } from '../../clients/session/acks.js'
import { Call } from '../../clients/transport/calls.js'
import { NO_PARAMS, payload, readPayload, string, uint32 } from './params.js'
import { ACK_TIMEOUT } from './wire.js'

/** @import { Control } from '../../channels/broker/contract.js' */
/** @import { Payload } from '../../clients/protocol/payload.js' */
/** @import { AckCall, AckSurvey, AckTarget, ClientAnswer, Registered } from '../../clients/session/acks.js' */
/** @import { Config } from '../../config/options.js' */
/** @import { Traffic } from '../../metrics/traffic.js' */
/** @import { ApiContext, Method } from './context.js' */

const MAX_TIMEOUT = 60_000
/** Maximum data of a message to clients, bytes; a publication may be larger. */
const MAX_DATA = 64 * 1024
const MAX_METHOD = 128
/** Time to the next pull after a failed one, ms: the engine, or a worker, may be unreachable for some time. */
const RETRY_MS = 500

/** A worker with clients of a request. `received`: number of its last batch. */
class Source {
  answered = 0
  gone = 0
  received = 0
  lost = false

  /** @param {Registered} registered */
  constructor({ node, worker, count }) {
    this.node = node
    this.worker = worker
    this.count = count
  }

  get open() {
    return this.lost ? 0 : this.count - this.answered - this.gone
  }
}

/**
 * `count`: answers after which the request returns, 0 = all; `timeout`: ms.
 * @typedef {{count: number, timeout: number}} Wait
 */

/** A request that has been sent. */
class Request {
  /** @type {Source[]} */
  #sources
  #control
  #budget
  #id
  #wait
  /** @type {Map<string, ClientAnswer>} by client */
  #answers = new Map()
  #bytes = 0
  #truncated = false
  /** @type {NodeJS.Timeout} */
  #timer
  #ended = false
  /** @type {(result: {text: string, complete: boolean}) => void} */
  #done

  /**
   * @param {string} id @param {Registered[]} registered @param {Wait} wait
   * @param {{control: Control, budget: AnswerBudget}} parts
   * @param {(result: {text: string, complete: boolean}) => void} done
   */
  constructor(id, registered, wait, { control, budget }, done) {
    this.#id = id
    this.#sources = registered.map(worker => new Source(worker))
    this.#wait = wait
    this.#control = control
    this.#budget = budget
    this.#done = done
    this.#timer = setTimeout(() => this.end(false), wait.timeout)
  }

  /** @param {string | undefined} push data of the message; undefined: a publication */
  start(push) {
    for (const source of this.#sources) this.#pull(source, push)
    this.#check()
  }

  /** @param {Source} source @param {string} [push] with the first pull */
  #pull(source, push) {
    const { node, worker, received } = source
    /** @type {AckCall} */
    const call = { op: 'pull', id: this.#id, received, timeout: this.#wait.timeout, push }
    this.#control.call(node, worker, encode(call), (error, bytes) => {
      if (this.#ended) return
      if (error === errors.notFound || (error === null && bytes.length === 0)) source.lost = true
      else if (error) return void setTimeout(() => this.#ended || this.#pull(source, push), RETRY_MS)
      else this.#add(source, bytes)
      this.#check()
      if (!this.#ended && source.open > 0) this.#pull(source)
    })
  }

  /** @param {Source} source @param {Buffer} bytes */
  #add(source, bytes) {
    const { batch, gone, answers } = readBatch(bytes)
    if (batch <= source.received) return
    source.received = batch
    source.gone = gone
    source.answered += answers.length
    for (const answer of answers) {
      const size = answer.text === null ? -1 : Buffer.byteLength(answer.text)
      if (size < 0 || !this.#budget.take(size, this.#bytes)) this.#truncated = true
      else {
        this.#bytes += size
        this.#answers.set(answer.client, answer)
      }
    }
  }

  /** @param {(source: Source) => number} of */
  #sum(of) {
    return this.#sources.reduce((sum, source) => sum + of(source), 0)
  }

  #check() {
    const { count } = this.#wait
    if (this.#ended) return
    const enough = count > 0 && this.#sum(({ answered }) => answered) >= count
    if (enough || this.#sum(({ open }) => open) === 0) this.end(true)
  }

  /** @param {boolean} complete */
  end(complete) {
    if (this.#ended) return
    this.#ended = true
    clearTimeout(this.#timer)
    this.cancel()
    const sent = this.#sum(({ count }) => count)
    const answered = this.#sum(source => source.answered)
    // A lost worker took its clients with it.
    const gone = this.#sum(source => (source.lost ? source.count - source.answered : source.gone))
    const figures = JSON.stringify({ sent, answered, gone, complete, truncated: this.#truncated })
    const answers = Array.from(
      this.#answers.values(),
      ({ client, user, text }) => `"${client}":{"user":${JSON.stringify(user)}${text}}`,
    )
    this.#budget.release(this.#bytes)
    this.#done({ text: `${figures.slice(0, -1)},"answers":{${answers.join(',')}}}`, complete })
  }

  /** Later answers are refused. */
  cancel() {
    for (const source of this.#sources) endAt(this.#control, source, this.#id)
  }
}

/** @param {AckCall} call */
const encode = call => `${String.fromCharCode(Call.ACKS)}${JSON.stringify(call)}`

/** @param {Control} control @param {{node: string, worker: number}} at @param {string} id */
const endAt = (control, { node, worker }, id) => control.call(node, worker, encode({ op: 'end', id }), null)

/**
 * Of a request. `tags`: of its publication; `push`: data of its message as JSON text, undefined: `publish` sends it.
 * @typedef {object} Outgoing
 * @property {Record<string, string> | null} [tags]
 * @property {string} [push]
 * @property {() => Promise<void>} [publish]
 */

/** The requests of a process that wait for answers. */
export class Requests {
  /** @type {Set<Request>} */
  #sent = new Set()
  #pending = 0
  #closed = false
  #budget = new AnswerBudget()
  #control
  #settings
  #traffic

  /**
   * @param {Control} control @param {() => Config['client']['acks']} settings current ones
   * @param {Pick<Traffic, 'add'>} traffic
   */
  constructor(control, settings, traffic) {
    this.#control = control
    this.#settings = settings
    this.#traffic = traffic
  }

  /**
   * Sends a request and waits for the answers.
   * @param {AckTarget} target @param {Wait} wait @param {(id: string) => Outgoing} create
   * @returns {Promise<string>} the result as JSON text
   * @throws {ReplyError} the request is not sent
   */
  async ask(target, wait, create) {
    const { enabled, max_pending, max_targets } = this.#settings()
    if (!enabled) throw errors.notAvailable
    this.#pending++
    try {
      if (this.#closed) throw errors.internal
      if (this.#pending > max_pending) throw errors.limitExceeded
      const { text, complete } = await this.#ask(target, wait, create, { max_pending, max_targets })
      this.#traffic.add('requests', complete ? 'complete' : 'timeout')
      return text
    } catch (error) {
      this.#traffic.add('requests', 'failed')
      throw error
    } finally {
      this.#pending--
    }
  }

  /**
   * @param {AckTarget} target @param {Wait} wait @param {(id: string) => Outgoing} create
   * @param {{max_pending: number, max_targets: number}} limits
   * @returns {Promise<{text: string, complete: boolean}>}
   */
  async #ask(target, wait, create, { max_pending, max_targets }) {
    const id = randomBytes(16).toString('base64url')
    const { tags, push, publish } = create(id)
    /** @type {AckSurvey} */
    const survey = {
      ...target,
      id,
      tags,
      timeout: wait.timeout,
      maxTargets: max_targets,
      maxPending: max_pending,
    }
    // The queue process, and workers that do not have the option yet, answer null.
    const all = (await this.#control.survey('acks', survey)).filter(answer => answer !== null)
    const registered = /** @type {Registered[]} */ (all).filter(({ count }) => count > 0)
    const sent = registered.reduce((sum, { count }) => sum + count, 0)
    try {
      if (all.some(({ count }) => count < 0) || sent > max_targets) throw errors.limitExceeded
      if (sent === 0 && (target.client || target.session)) throw errors.notFound
      await publish?.()
    } catch (error) {
      for (const worker of registered) endAt(this.#control, worker, id)
      throw error
    }
    return new Promise(resolve => {
      const request = new Request(
        id,
        registered,
        wait,
        { control: this.#control, budget: this.#budget },
        result => {
          this.#sent.delete(request)
          resolve(result)
        },
      )
      this.#sent.add(request)
      request.start(push)
      if (this.#closed) request.end(false)
    })
  }

  /** Ends all requests with the answers that they have, and refuses later ones. */
  close() {
    this.#closed = true
    for (const request of this.#sent) request.end(false)
  }
}

/** @param {string} what is wrong */
const badRequest = what => new ReplyError(107, `bad request: ${what}`, false, errors.badRequest.status)

/**
 * @param {{count: number, timeout_ms: number}} given 0: default
 * @returns {Wait}
 * @throws {ReplyError} 107
 */
export function readWait({ count, timeout_ms }) {
  if (timeout_ms > MAX_TIMEOUT) throw badRequest(`timeout_ms must be at most ${MAX_TIMEOUT}`)
  return { count, timeout: timeout_ms || ACK_TIMEOUT }
}

export const waitFields = { count: uint32, timeout_ms: uint32 }

/**
 * Sends a request as a publication.
 * @param {any} params fields of `publish` @param {Payload} payload @param {Wait} wait @param {string} method '' = none
 * @param {ApiContext} context
 * @param {(offset: number, epoch: string) => void} [published]
 * @returns {Promise<string>}
 */
export function askChannel(
  params,
  payload,
  wait,
  method,
  { requests, publisher, rules },
  published = () => {},
) {
  if (requests === null) throw errors.notAvailable
  const { channel } = params
  if (channel === '') throw errors.badRequest
  const namespace = rules.resolve(channel)
  if (namespace === undefined) throw errors.unknownChannel
  if (namespace.kind !== 'stream') throw errors.badRequest
  return requests.ask({ channel, only: params.target }, wait, id => {
    const tags = { ...params.tags, [ACK_TAG]: id, ...(method === '' ? null : { [METHOD_TAG]: method }) }
    const publish = () =>
      new Promise((/** @type {(value: void) => void} */ resolve, reject) =>
        publisher.publish(channel, payload, { ...params, tags }, (error, offset, epoch) => {
          if (error !== null) return reject(error)
          published(offset, epoch)
          resolve()
        }),
      )
    return { tags, publish }
  })
}

/** @param {string} id @param {string} method @param {Payload} payload @returns {string} JSON text */
function messageOf(id, method, { data, json }) {
  let text = `{"$req":{"id":"${id}","method":${JSON.stringify(method)}`
  if (data.length > 0)
    text += json ? `,"data":${data}` : `,"b64data":"${Buffer.from(data).toString('base64')}"`
  return `${text}}}`
}

const TARGETS = /** @type {const} */ (['client', 'user', 'session', 'channel'])

/** @type {Method} */
export const request = {
  fields: {
    client: string,
    user: string,
    session: string,
    channel: string,
    method: string,
    data: payload,
    b64data: string,
    ...waitFields,
  },
  run(params, context) {
    const { method } = params
    const names = TARGETS.filter(name => params[name] !== '')
    if (names.length !== 1) throw badRequest('one of client, user, session and channel is required')
    if (Buffer.byteLength(method) > MAX_METHOD) throw badRequest(`method is longer than ${MAX_METHOD} bytes`)
    const wait = readWait(params)
    const data = readPayload(params.data, params.b64data)
    const [name] = names
    if (name === 'channel')
      return askChannel({ ...NO_PARAMS, channel: params.channel }, data, wait, method, context)
    if (context.requests === null) throw errors.notAvailable
    if (Buffer.byteLength(data.data) > MAX_DATA) throw errors.limitExceeded
    return context.requests.ask({ [name]: params[name] }, wait, id => ({ push: messageOf(id, method, data) }))
  },
}
