import { errors } from '../../errors.js'
import { encode, Kind, Parcels } from './inboxes.js'

/** Seconds that a worker may take to answer. */
const MAX_TICKS = 5
/** Bytes of an answer that still go into a message. Hundreds of workers may answer at once. */
const MAX_MESSAGE = 64 * 1024

/**
 * @typedef {object} Survey
 * @property {string} question JSON
 * @property {Set<string>} missing uids of those who have not answered yet
 * @property {boolean} sent whether everybody who listens has been asked
 * @property {any[]} answers
 * @property {number} ticks
 * @property {(answers: any[]) => void} resolve
 * @property {(error: Error) => void} reject
 */

/**
 * Questions to all workers of all nodes, and this worker's answers to those of others. Who is out of reach for a moment is asked when
 * it is back; who ends is not waited for.
 */
export class Surveys {
  /** @type {Map<number, Survey>} */
  #open = new Map()
  #last = 0
  #partition
  #mail
  #members
  #parcels
  #uid
  #events
  #log

  /**
   * @param {object} parts
   * @param {import('./partition.js').Partition} parts.partition
   * @param {import('./inboxes.js').Mail} parts.mail
   * @param {import('./registry.js').Members} parts.members
   * @param {string} parts.uid of this worker
   * @param {import('../contract.js').BrokerEvents} parts.events
   * @param {import('pino').Logger} parts.log
   */
  constructor({ partition, mail, members, uid, events, log }) {
    this.#partition = partition
    this.#mail = mail
    this.#members = members
    this.#parcels = new Parcels(partition)
    this.#uid = uid
    this.#events = events
    this.#log = log
  }

  /**
   * @param {string} op
   * @param {any} params
   * @returns {Promise<any[]>}
   */
  ask(op, params) {
    if (!this.#members.ready) return Promise.reject(errors.internal)
    return new Promise((resolve, reject) => {
      const number = ++this.#last
      const question = JSON.stringify({ op, params })
      const missing = new Set(this.#members.uids()).add(this.#uid)
      const survey = { question, missing, sent: false, answers: [], ticks: 0, resolve, reject }
      this.#open.set(number, survey)
      this.#mail.broadcast(this.#question(number, survey), error => {
        if (error) return this.#fail(number)
        survey.sent = true
        this.#check(number, survey)
      })
    })
  }

  /**
   * @param {number} number
   * @param {Survey} survey
   */
  #question(number, { question }) {
    return encode(Kind.ASK, [this.#uid, number], question)
  }

  /**
   * @param {number} number
   * @param {Survey} survey
   */
  #check(number, { sent, missing, answers, resolve }) {
    if (sent && missing.size === 0 && this.#open.delete(number)) resolve(answers)
  }

  /** @param {number} number */
  #fail(number) {
    const survey = this.#open.get(number)
    if (this.#open.delete(number)) survey?.reject(errors.internal)
  }

  /** What is under way cannot be finished any more. */
  failAll() {
    for (const number of this.#open.keys()) this.#fail(number)
  }

  /**
   * A worker can be reached.
   * @param {string} uid
   */
  here(uid) {
    for (const [number, survey] of this.#open) {
      // It has come before the question went out, and so will be asked together with all others.
      if (!survey.sent) survey.missing.add(uid)
      else if (survey.missing.has(uid)) this.#mail.send(uid, this.#question(number, survey), () => {})
    }
  }

  /**
   * A worker that has ended has nothing to tell any more.
   * @param {string} uid
   */
  gone(uid) {
    for (const [number, survey] of this.#open) {
      if (survey.missing.delete(uid)) this.#check(number, survey)
    }
  }

  /** To be called once a second. */
  tick() {
    for (const [number, survey] of this.#open) if (++survey.ticks > MAX_TICKS) this.#fail(number)
  }

  /**
   * This worker is asked.
   * @param {string} asker
   * @param {number} number
   * @param {Buffer} question
   */
  asked(asker, number, question) {
    const { op, params } = JSON.parse(question.toString())
    let answer
    try {
      answer = JSON.stringify(this.#events.survey(op, params) ?? null)
    } catch (error) {
      this.#log.error({ err: error, op }, 'survey failed')
    }
    const none = encode(Kind.UNTOLD, [number, this.#uid])
    if (asker === this.#uid) {
      if (answer === undefined) this.untold(number, this.#uid)
      else this.told(number, this.#uid, answer)
    } else if (answer === undefined) this.#mail.reply(asker, none, none)
    else if (answer.length <= MAX_MESSAGE)
      this.#mail.reply(asker, encode(Kind.TOLD, [number, this.#uid], answer), none)
    else {
      const bytes = Buffer.from(answer)
      this.#parcels.leave(this.#keyOf(asker, number, this.#uid), bytes, error => {
        // Without Redis: whoever asked will ask again.
        if (!error) this.#mail.reply(asker, encode(Kind.LEFT, [number, this.#uid, bytes.length]), none)
      })
    }
  }

  /**
   * @param {string} asker
   * @param {number} number
   * @param {string} uid who answers
   */
  #keyOf(asker, number, uid) {
    return this.#partition.key('answer', `${asker}.${number}.${uid}`)
  }

  /**
   * A worker has answered.
   * @param {number} number
   * @param {string} uid
   * @param {string} answer JSON
   */
  told(number, uid, answer) {
    const survey = this.#open.get(number)
    if (!survey?.missing.delete(uid)) return
    survey.answers.push(JSON.parse(answer))
    this.#check(number, survey)
  }

  /**
   * A worker has left its answer in Redis.
   * @param {number} number
   * @param {string} uid
   * @param {number} size bytes
   */
  left(number, uid, size) {
    const wanted = () => this.#open.get(number)?.missing.has(uid) === true
    this.#parcels.take(this.#keyOf(this.#uid, number, uid), size, wanted, (error, bytes) => {
      if (error) this.#fail(number)
      else this.told(number, uid, bytes.toString())
    })
  }

  /**
   * A worker has no answer.
   * @param {number} number
   * @param {string} uid
   */
  untold(number, uid) {
    if (this.#open.get(number)?.missing.has(uid)) this.#fail(number)
  }
}
