// What stands around a consumer of one type in its tests: the calls that it makes are kept, and fail when told to.

import { EventEmitter, once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import { within } from '../../../kit/wait.js'

/** @typedef {{payload: string | null, method: string, headers: Record<string, string>, since?: number}} Call */

const MAX_BACKOFF_MS = 5000

export class TypeRig {
  /** @type {Call[]} in the order of their outcome */
  calls = []
  /** @type {Error[]} of the source */
  failures = []
  lag = -1
  /** Calls under way at the same time, at most. */
  concurrent = 0
  /** @type {(call: Call) => Promise<import('../../../../src/backends/queues/contract.js').Outcome> | import('../../../../src/backends/queues/contract.js').Outcome} */
  answer = () => 'done'
  #running = 0
  #changes = new EventEmitter().setMaxListeners(0)

  /**
   * @param {{create: (context: any) => import('../../../../src/backends/queues/contract.js').Consumer}} type
   * @param {any} options type block, complete
   */
  constructor(type, options) {
    this.consumer = type.create({
      name: 'orders',
      options,
      node: 'node-1',
      log: { debug() {}, info() {}, warn() {}, error() {} },
      clock: Date.now,
      handle: this.#handle.bind(this),
      failed: (/** @type {Error} */ error) => {
        this.failures.push(error)
        this.#changes.emit('change')
      },
      lag: (/** @type {number} */ messages) => {
        this.lag = messages
        this.#changes.emit('change')
      },
      backoff: (/** @type {number} */ tries, /** @type {AbortSignal} */ signal) =>
        wait(Math.min(MAX_BACKOFF_MS, 10 * 2 ** tries), undefined, { signal }).catch(() => {}),
    })
  }

  /** @param {import('../../../../src/backends/queues/contract.js').Message} message @param {number} [since] */
  async #handle({ payload, method, headers }, since) {
    this.concurrent = Math.max(this.concurrent, ++this.#running)
    const call = {
      payload: payload === null ? null : payload.toString(),
      method,
      headers: { ...headers },
      since,
    }
    const outcome = await this.answer(call)
    this.#running--
    if (outcome !== 'retry') this.calls.push(call)
    this.#changes.emit('change')
    return outcome
  }

  /** @param {() => boolean} holds checked after each call, failure and measurement */
  async until(holds) {
    const changes = async () => {
      while (!holds()) await once(this.#changes, 'change')
    }
    await within(changes(), () => `${holds}`)
  }

  /** @returns {(string | null)[]} */
  get payloads() {
    return this.calls.map(({ payload }) => payload)
  }

  /** @param {any} t stops with this test */
  async start(t) {
    t.teardown(() => this.consumer.stop())
    await this.consumer.start()
  }
}

/** @param {number} length @param {string} [prefix] @returns {string[]} `0`, `1` ... */
export const numbered = (length, prefix = '') => Array.from({ length }, (_, index) => `${prefix}${index}`)
