import { encodeAnswer } from './answer.js'

/**
 * Whoever waits for the answer to a POST.
 *
 * @typedef {object} Asker
 * @property {(answer: import('./answer.js').Answer) => void} give MUST be called once at most
 * @property {(worker: number, poll: number) => boolean} is whether it is this poll of this worker
 */

const BINARY = 'application/octet-stream'
const TEXT = 'text/plain; charset=utf-8'

/**
 * @param {string} reason of whatever the API was told: a header holds visible ASCII
 * @returns {string} for `decodeURIComponent`
 */
const headerText = reason =>
  Buffer.from(reason)
    .toString()
    .replace(/[^ -$&-~]/gu, encodeURIComponent)

/**
 * A client whose request is here.
 * @template T
 * @implements {Asker}
 */
export class HttpAsker {
  #exchange
  #head
  #name
  #subject
  #abandoned

  /**
   * @param {import('../../server/contract.js').Exchange} exchange
   * @param {Readonly<Record<string, string>>} head
   * @param {string} name of the session that it opens, '' for later requests
   * @param {T} subject what it asks for
   * @param {(subject: T, asker: HttpAsker<T>) => void} abandoned the client has left without an answer; one function for all of a kind
   */
  constructor(exchange, head, name, subject, abandoned) {
    this.#exchange = exchange
    this.#head = head
    this.#name = name
    this.#subject = subject
    this.#abandoned = abandoned
    exchange.waiter = this
  }

  is() {
    return false
  }

  abandoned() {
    this.#abandoned(this.#subject, this)
  }

  /** @type {Asker['give']} */
  give({ status, body, seq, binary, farewell }) {
    const head = { ...this.#head }
    if (this.#name !== '') head['Halley-Session'] = this.#name
    if (seq >= 0) {
      head['Content-Type'] = binary ? BINARY : TEXT
      head['Halley-Seq'] = `${seq}`
    }
    if (farewell !== null) head['Halley-Close'] = `${farewell.code} ${headerText(farewell.reason)}`
    this.#exchange.waiter = null
    this.#exchange.reply(status, head, body)
  }
}

/**
 * A worker that holds a client's request.
 * @implements {Asker}
 */
export class CallAsker {
  #answer
  #worker
  #poll

  /**
   * @param {import('../calls.js').Answer} answer
   * @param {number} worker
   * @param {number} poll number there
   */
  constructor(answer, worker, poll) {
    this.#answer = answer
    this.#worker = worker
    this.#poll = poll
  }

  /** @type {Asker['is']} */
  is(worker, poll) {
    return worker === this.#worker && poll === this.#poll
  }

  /** @type {Asker['give']} */
  give(answer) {
    this.#answer(encodeAnswer(answer))
  }
}
