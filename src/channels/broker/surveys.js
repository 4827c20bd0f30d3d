/** @import { Log } from '../../base/log.js' */
/** @import { BrokerEvents } from './contract.js' */

/** Response timeout, s. */
const MAX_TICKS = 5

/**
 * `missing`: pending workers; `answers`: JSON; `done` gets null if a worker fails or times out.
 * @template W
 * @typedef {{missing: Set<W>, answers: string[], question: any, ticks: number,
 *   done: (answers: string[] | null) => void}} Survey
 */

/** Pending surveys of an engine. @template W how the engine identifies a worker */
export class Surveys {
  /** @type {Map<number, Survey<W>>} */
  open = new Map()
  #last = 0

  /**
   * @param {Iterable<W>} workers @param {any} question @param {(answers: string[] | null) => void} done
   * @returns {number} the survey's number, from 1; 32 bits
   */
  start(workers, question, done) {
    this.#last = (this.#last + 1) >>> 0
    this.open.set(this.#last, { missing: new Set(workers), answers: [], question, ticks: 0, done })
    return this.#last
  }

  /** @param {number} number @param {W} worker @param {string} answer JSON text, '' if the worker failed */
  answered(number, worker, answer) {
    const survey = this.open.get(number)
    if (!survey?.missing.has(worker)) return
    if (answer === '') return this.fail(number)
    survey.answers.push(answer)
    this.remove(number, worker)
  }

  /** Stops waiting for a worker. @param {number} number @param {W} worker */
  remove(number, worker) {
    const survey = this.open.get(number)
    if (!survey?.missing.delete(worker) || survey.missing.size > 0) return
    this.open.delete(number)
    survey.done(survey.answers)
  }

  /** @param {W} worker exited */
  removeWorker(worker) {
    for (const number of this.open.keys()) this.remove(number, worker)
  }

  /** @param {number} number */
  fail(number) {
    const survey = this.open.get(number)
    if (this.open.delete(number)) survey?.done(null)
  }

  failAll() {
    for (const number of [...this.open.keys()]) this.fail(number)
  }

  tick() {
    for (const [number, survey] of this.open) if (++survey.ticks > MAX_TICKS) this.fail(number)
  }
}

/**
 * Runs an operation of this worker.
 * @param {BrokerEvents} events @param {Log} log @param {string} op @param {any} params
 * @param {number} before see BrokerEvents
 * @param {(text: string) => void} answer gets JSON text, '' if the operation failed; called before this returns, unless
 *   the operation returns a promise
 */
export function answerSurvey(events, log, op, params, before, answer) {
  const fail = (/** @type {Error} */ error) => {
    log.error({ err: error, op }, 'survey failed')
    answer('')
  }
  const send = (/** @type {any} */ result) => {
    let text = ''
    try {
      text = JSON.stringify(result ?? null)
    } catch (error) {
      return fail(error)
    }
    answer(text)
  }
  let result
  try {
    result = events.survey(op, params, before)
  } catch (error) {
    return fail(error)
  }
  if (result instanceof Promise) result.then(send, fail)
  else send(result)
}
