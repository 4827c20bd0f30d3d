import { add } from './merge.js'

/** @import { ConsumerFigures, ConsumersFigures, RepublisherFigures } from './schema.js' */

/**
 * @template {Record<string, any>} T
 * @param {T | undefined} before of ended processes @param {T} now @param {readonly (keyof T)[]} counts
 */
function withCounts(before, now, counts) {
  if (before === undefined) return now
  const sum = { ...now }
  for (const name of counts) sum[name] = add(structuredClone(before[name]), now[name])
  return sum
}

const CONSUMED = /** @type {const} */ (['processed', 'skipped', 'errors', 'retries'])
const REPUBLISHED = /** @type {const} */ (['sent', 'confirmed', 'returned', 'refused', 'dropped'])

/**
 * By index of the republisher (its bit in a route), since the start of the gateway.
 * @typedef {object} RepublishCounts
 * @property {number[]} unreached dropped: no process
 * @property {number[]} handedBefore to ended processes
 */

/** @typedef {Omit<RepublisherFigures, 'unreached' | 'abandoned'>} Republished */

/** @template {{name: string}} T @param {T[]} list */
const byName = list => new Map(list.map(one => [one.name, one]))

/** Counts since the start of the gateway, kept across replacements of the queue process. */
export class QueueTotals {
  #pid = 0
  /** Of ended processes. */
  #before = {
    consumers: /** @type {Map<string, ConsumerFigures>} */ (new Map()),
    republishers: /** @type {Map<string, Republished>} */ (new Map()),
    handed: /** @type {number[]} */ ([]),
  }
  /** @type {ConsumerFigures[]} */
  #consumers = []
  /** @type {Republished[]} */
  #republishers = []
  /** @type {Record<string, number>} */
  #apiErrors = {}
  #counts

  /** @param {() => RepublishCounts} counts */
  constructor(counts) {
    this.#counts = counts
  }

  /**
   * @param {number} pid
   * @param {object} sample since its start
   * @param {ConsumerFigures[]} sample.consumers @param {Republished[]} sample.republish
   * @param {Record<string, number>} apiErrors by code, since its last sample
   */
  update(pid, { consumers, republish }, apiErrors) {
    if (pid !== this.#pid) {
      this.#before = {
        consumers: byName(this.#allConsumers),
        republishers: byName(this.#allRepublishers),
        handed: this.#counts().handedBefore,
      }
      this.#pid = pid
    }
    this.#consumers = consumers
    this.#republishers = republish
    add(this.#apiErrors, apiErrors)
  }

  /** The process has exited: keeps counts, clears queues and connections; the lag is unknown. */
  ended() {
    const idle = { queued: 0, queued_bytes: 0, age: 0, up: false }
    this.#consumers = this.#consumers.map(one => ({ ...one, age: 0, backoff: 0, lag: null }))
    this.#republishers = this.#republishers.map(one => ({ ...one, ...idle }))
  }

  get #allConsumers() {
    return this.#consumers.map(one => withCounts(this.#before.consumers.get(one.name), one, CONSUMED))
  }

  get #allRepublishers() {
    return this.#republishers.map(one =>
      withCounts(this.#before.republishers.get(one.name), one, REPUBLISHED),
    )
  }

  /** @returns {ConsumersFigures | null} */
  get consumers() {
    if (this.#consumers.length === 0) return null
    return { list: this.#allConsumers, api_errors: { ...this.#apiErrors } }
  }

  /** @returns {RepublisherFigures[] | null} */
  get republishers() {
    if (this.#republishers.length === 0) return null
    const { unreached } = this.#counts()
    return this.#allRepublishers.map((one, i) => ({
      ...one,
      unreached: unreached[i] ?? 0,
      abandoned: this.#abandoned(one.name, i),
    }))
  }

  /** @param {string} name @param {number} index */
  #abandoned(name, index) {
    const before = this.#before.republishers.get(name)
    const done = before ? before.confirmed + before.returned + before.refused + before.dropped : 0
    return Math.max(0, (this.#before.handed[index] ?? 0) - done)
  }
}
