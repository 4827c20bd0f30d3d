import { errors } from '../../../base/errors.js'
import { Surveys, surveyAnswer } from '../surveys.js'
import { encode, Kind, LargeMessages } from './inboxes.js'

/** Largest answer (bytes) sent as a message. Hundreds of workers may answer at once. */
const MAX_MESSAGE = 64 * 1024
/** In place of a question: workers read it in the log of orders. */
const IN_LOG = ''
/** Stands among the missing workers until the question has been sent. */
const SENDING = ''

/**
 * Surveys over all workers of all nodes, and this worker's answers to those of others. A worker that is out of reach
 * for a moment receives the question when it is back. Workers are identified by uid.
 * @extends {Surveys<string>}
 */
export class RedisSurveys extends Surveys {
  #partition
  #inboxes
  #registry
  #large
  #uid
  #events
  #log

  /**
   * @param {object} parts @param {import('./partition.js').Partition} parts.partition
   * @param {import('./inboxes.js').Inboxes} parts.inboxes @param {import('./registry.js').Registry} parts.registry
   * @param {string} parts.uid
   * @param {import('../contract.js').BrokerEvents} parts.events @param {import('pino').Logger} parts.log
   */
  constructor({ partition, inboxes, registry, uid, events, log }) {
    super()
    this.#partition = partition
    this.#inboxes = inboxes
    this.#registry = registry
    this.#large = new LargeMessages(partition)
    this.#uid = uid
    this.#events = events
    this.#log = log
  }

  /** @param {string} op @param {any} params @returns {Promise<any[]>} */
  ask(op, params) {
    const question = JSON.stringify({ op, params })
    return this.#ask(question, (number, sent) =>
      this.#inboxes.broadcast(this.#question(number, question), sent),
    )
  }

  /**
   * Asks by an order, which a worker that is away reads when it is back.
   * @param {(number: number, sent: (error: Error | null) => void) => void} append gives the order
   * @returns {Promise<any[]>}
   */
  order(append) {
    return this.#ask(IN_LOG, append)
  }

  /**
   * @param {string} question for workers that come back
   * @param {(number: number, sent: (error: Error | null) => void) => void} send
   * @returns {Promise<any[]>}
   */
  #ask(question, send) {
    if (!this.#registry.ready) return Promise.reject(errors.internal)
    return new Promise((resolve, reject) => {
      const asked = [...this.#registry.uids(), this.#uid, SENDING]
      const number = this.start(asked, question, answers => {
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
    return encode(Kind.SURVEY, [this.#uid, number], question)
  }

  /** A worker can be reached. @param {string} uid */
  workerUp(uid) {
    for (const [number, { missing, question }] of this.open) {
      // It was announced before the question, so it receives the question together with all others.
      if (missing.has(SENDING)) missing.add(uid)
      else if (missing.has(uid) && question !== IN_LOG)
        this.#inboxes.send(uid, this.#question(number, question), () => {})
    }
  }

  /** Answers a survey. @param {string} from uid of the asker @param {number} number @param {Buffer} question */
  asked(from, number, question) {
    const { op, params } = JSON.parse(question.toString())
    this.reply(from, number, surveyAnswer(this.#events, this.#log, op, params))
  }

  /** @param {string} from uid of the asker @param {number} number @param {string} answer JSON, '' if it has failed */
  reply(from, number, answer) {
    if (from === this.#uid) return this.answered(number, this.#uid, answer)
    const failed = encode(Kind.SURVEY_FAILED, [number, this.#uid])
    if (answer === '') return this.#inboxes.reply(from, failed, failed)
    if (answer.length <= MAX_MESSAGE) {
      return this.#inboxes.reply(from, encode(Kind.SURVEY_ANSWER, [number, this.#uid], answer), failed)
    }
    const bytes = Buffer.from(answer)
    this.#large.put(this.#keyOf(from, number, this.#uid), bytes, error => {
      // Without Redis the question is sent again.
      if (error) return
      this.#inboxes.reply(from, encode(Kind.SURVEY_LARGE, [number, this.#uid, bytes.length]), failed)
    })
  }

  /** @param {string} from @param {number} number @param {string} uid of the answering worker */
  #keyOf(from, number, uid) {
    return this.#partition.key('answer', `${from}.${number}.${uid}`)
  }

  /** Fetches an answer stored in Redis. @param {number} number @param {string} uid @param {number} size bytes */
  answeredLarge(number, uid, size) {
    const wanted = () => this.open.get(number)?.missing.has(uid) === true
    this.#large.fetch(this.#keyOf(this.#uid, number, uid), size, wanted, (error, bytes) => {
      if (error) this.fail(number)
      else this.answered(number, uid, bytes.toString())
    })
  }
}
