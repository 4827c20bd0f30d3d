import { answer } from './child.js'
import { nowMicros, sleep } from './clock.js'
import { Histogram } from './histogram.js'
import { Payloads } from './payload.js'
import { Publisher } from './publisher.js'

/**
 * @typedef {object} PublishersPlan
 * @property {import('./load.js').Api[]} apis connection k of all publishes to number k, in turn
 * @property {number} channels of the run; connection k of all publishes to channels k, k + connections, ... in turn
 * @property {number} first index of this process's first connection among all
 * @property {number} count connections of this process
 * @property {number} connections of all processes
 * @property {number} rate publishes a second of this process; 0: the next one as soon as one is answered
 * @property {number} size bytes of each payload
 */

/** How long an answer may take once the time is over, ms. */
const ANSWER_PATIENCE = 5_000

/** The publishing connections of one process. */
export class Publishers {
  buffer = Buffer.allocUnsafeSlow(64 * 1024)
  ended = false
  #plan
  #payloads
  #answers = new Histogram()
  #published
  #counted = 0
  #errors = 0
  #firstFault = ''
  #sent = 0
  #underWay = 0
  #startedAt = 0
  #from = Infinity
  #to = Infinity
  /** @type {Publisher[]} */
  #idle = []
  /** @type {Map<Publisher, number>} the channel whose turn is next */
  #next = new Map()

  /** @param {PublishersPlan} plan */
  constructor(plan) {
    this.#plan = plan
    this.#payloads = new Payloads(plan.size)
    this.#published = new Uint32Array(plan.channels)
  }

  /** Opens the connections. */
  async connect() {
    const { first, count, apis } = this.#plan
    const opened = Array.from(
      { length: count },
      (_, k) =>
        new Promise(resolve => {
          const publisher = new Publisher(this, apis[(first + k) % apis.length], () => resolve(undefined))
          this.#next.set(publisher, first + k)
          this.#idle.push(publisher)
        }),
    )
    await Promise.all(opened)
  }

  /**
   * Publishes from now on until `to`, and waits for what is still unanswered then.
   * @param {{from: number, to: number}} span microseconds: what is answered in it makes the rates and latencies
   * @returns {Promise<{published: Uint32Array, counted: number, errors: number, firstFault: string, answers: object}>}
   */
  async publish({ from, to }) {
    this.#from = from
    this.#to = to
    this.#startedAt = nowMicros()
    while (nowMicros() < to) {
      this.#fill()
      await sleep(1)
    }
    const patience = Date.now() + ANSWER_PATIENCE
    while (this.#underWay > 0 && Date.now() < patience) await sleep(5)
    this.ended = true
    return {
      published: this.#published,
      counted: this.#counted,
      errors: this.#errors + this.#underWay,
      firstFault: this.#firstFault,
      answers: this.#answers.state,
    }
  }

  /**
   * @param {Publisher} publisher
   * @param {number} channel
   * @param {boolean} ok
   * @param {number} sentAt microseconds
   * @param {string} text of the answer
   */
  answered(publisher, channel, ok, sentAt, text) {
    const now = nowMicros()
    this.#underWay--
    this.#idle.push(publisher)
    if (ok) {
      this.#published[channel]++
      if (now >= this.#from && now < this.#to) {
        this.#counted++
        this.#answers.add(now - sentAt)
      }
    } else {
      this.#errors++
      if (this.#firstFault === '') this.#firstFault = text.slice(0, 300)
    }
    if (this.#plan.rate === 0 && now < this.#to) this.#fill()
  }

  /** Sends what is due on the connections that wait for nothing. */
  #fill() {
    const { rate, channels, connections } = this.#plan
    const now = nowMicros()
    const due = rate === 0 ? Infinity : ((now - this.#startedAt) * rate) / 1e6
    while (this.#sent < due && this.#idle.length > 0) {
      // The one that has waited longest: all of them have their turn, however low the rate.
      const publisher = /** @type {Publisher} */ (this.#idle.shift())
      const channel = /** @type {number} */ (this.#next.get(publisher))
      this.#next.set(
        publisher,
        channel + connections < channels ? channel + connections : channel % connections,
      )
      const sentAt = nowMicros()
      const data = this.#payloads.make(sentAt, this.#published[channel] + 1)
      const body = `{"channel":"ch${channel}","data":${data}}`
      publisher.send(channel, body, sentAt)
      this.#sent++
      this.#underWay++
    }
  }
}

/** @type {Publishers} */
let group

answer({
  start: plan => {
    group = new Publishers(plan)
    return group.connect()
  },
  publish: span => group.publish(span),
})
