import { errors } from '../../../base/errors.js'
import { answerSurvey, Surveys } from '../surveys.js'
import { encode, Kind, LargeMessages } from './inboxes.js'

/** @import { ControlParts } from './control.js' */
/** @import { Registry } from './registry.js' */

/** Maximum response sent as a message, bytes. Hundreds of workers may respond. */
const MAX_MESSAGE = 64 * 1024
/** Question that workers read in the log of orders. */
const IN_LOG = ''
/** In the set of missing workers until the question has been sent. */
const SENDING = ''

/** @typedef {(number: number, sent: (error: Error | null) => void) => void} Send sends the question of a survey */

/**
 * Surveys over all workers of all nodes. A temporarily unreachable worker gets the question when it reconnects.
 * @extends {Surveys<string>}
 */
export class RedisSurveys extends Surveys {
  #parts
  #large

  /** @param {ControlParts & {registry: Registry}} parts */
  constructor(parts) {
    super()
    this.#parts = parts
    this.#large = new LargeMessages(parts.partition)
  }

  /** @param {string} op @param {any} params @returns {Promise<any[]>} */
  ask(op, params) {
    const question = JSON.stringify({ op, params })
    const send = (/** @type {Parameters<Send>} */ ...[number, sent]) =>
      this.#parts.inboxes.broadcast(this.#question(number, question), sent)
    return this.#ask(question, send)
  }

  /** Surveys by an order, which disconnected workers read later. @param {Send} append @returns {Promise<any[]>} */
  order(append) {
    return this.#ask(IN_LOG, append)
  }

  /** @param {string} question for workers that reconnect @param {Send} send @returns {Promise<any[]>} */
  #ask(question, send) {
    const { registry, uid } = this.#parts
    if (!registry.ready) return Promise.reject(errors.internal)
    return new Promise((resolve, reject) => {
      const number = this.start([...registry.uids(), uid, SENDING], question, answers => {
        if (answers === null) reject(errors.internal)
        else resolve(answers.map(answer => JSON.parse(answer)))
      })
      send(number, error => {
        if (error) this.fail(number)
        else this.remove(number, SENDING)
      })
    })
  }

  /** @param {number} number @param {string} question JSON */
  #question(number, question) {
    return encode(Kind.SURVEY, [this.#parts.uid, number], question)
  }

  /** A worker is reachable. @param {string} uid */
  workerUp(uid) {
    for (const [number, { missing, question }] of this.open) {
      // It was announced before the question and gets it with all others.
      if (missing.has(SENDING)) missing.add(uid)
      else if (missing.has(uid) && question !== IN_LOG)
        this.#parts.inboxes.send(uid, this.#question(number, question), () => {})
    }
  }

  /** Handles a survey. @param {string} from uid of the requester @param {number} number @param {Buffer} question */
  question(from, number, question) {
    const { events, log } = this.#parts
    const { op, params } = JSON.parse(question.toString())
    answerSurvey(events, log, op, params, Infinity, answer => this.reply(from, number, answer))
  }

  /** @param {string} from uid of the requester @param {number} number @param {string} answer JSON, '' if it failed */
  reply(from, number, answer) {
    const { inboxes, uid } = this.#parts
    if (from === uid) return this.answered(number, uid, answer)
    const failed = encode(Kind.SURVEY_FAILED, [number, uid])
    if (answer === '') return inboxes.reply(from, failed, failed)
    if (answer.length <= MAX_MESSAGE)
      return inboxes.reply(from, encode(Kind.SURVEY_ANSWER, [number, uid], answer), failed)
    const bytes = Buffer.from(answer)
    const stored = encode(Kind.SURVEY_LARGE, [number, uid, bytes.length])
    // Without Redis the question is sent again.
    const reply = () => inboxes.reply(from, stored, failed)
    this.#large.put(this.#keyOf(from, number, uid), bytes).then(reply, () => {})
  }

  /** @param {string} from @param {number} number @param {string} uid of the responding worker */
  #keyOf(from, number, uid) {
    return this.#parts.partition.key('answer', `${from}.${number}.${uid}`)
  }

  /** Fetches a response stored in Redis. @param {number} number @param {string} uid @param {number} size bytes */
  answeredLarge(number, uid, size) {
    const wanted = () => this.open.get(number)?.missing.has(uid) === true
    this.#large.fetch(this.#keyOf(this.#parts.uid, number, uid), size, wanted).then(
      bytes => bytes && this.answered(number, uid, bytes.toString()),
      () => wanted() && this.fail(number),
    )
  }
}
