/** @import { ConsumerFigures, ConsumersFigures, RepublisherFigures } from './schema.js' */

/** @param {Record<string, number>} sum is changed @param {Record<string, number>} more */
function add(sum, more) {
  for (const name of Object.keys(more)) sum[name] = (sum[name] ?? 0) + more[name]
}

/** @param {ConsumerFigures | undefined} before @param {ConsumerFigures} now @returns {ConsumerFigures} */
function sumOf(before, now) {
  if (before === undefined) return now
  const skipped = { ...before.skipped }
  add(skipped, now.skipped)
  return {
    ...now,
    skipped,
    processed: before.processed + now.processed,
    errors: before.errors + now.errors,
    retries: before.retries + now.retries,
  }
}

/** @param {RepublisherFigures | undefined} before @param {RepublisherFigures} now @returns {RepublisherFigures} */
function republishedBy(before, now) {
  if (before === undefined) return now
  return {
    ...now,
    sent: before.sent + now.sent,
    confirmed: before.confirmed + now.confirmed,
    returned: before.returned + now.returned,
    refused: before.refused + now.refused,
    dropped: before.dropped + now.dropped,
  }
}

/** @template {{name: string}} T @param {T[]} list @returns {Map<string, T>} */
const byName = list => new Map(list.map(one => [one.name, one]))

/**
 * Figures of consumers and republishers since the start of the gateway: counts do not fall when the queue process is
 * replaced.
 */
export class QueueTotals {
  #pid = 0
  /** Of processes that have ended. */
  #before = {
    consumers: /** @type {Map<string, ConsumerFigures>} */ (new Map()),
    republishers: /** @type {Map<string, RepublisherFigures>} */ (new Map()),
  }
  /** @type {ConsumerFigures[]} */
  #consumers = []
  /** @type {RepublisherFigures[]} */
  #republishers = []
  /** @type {Record<string, number>} */
  #apiErrors = {}

  /**
   * @param {number} pid of the process
   * @param {object} sample since its start
   * @param {ConsumerFigures[]} sample.consumers @param {RepublisherFigures[]} sample.republish
   * @param {Record<string, number>} apiErrors by code, since its last sample
   */
  update(pid, { consumers, republish }, apiErrors) {
    if (pid !== this.#pid) {
      this.#before = { consumers: byName(this.#allConsumers), republishers: byName(this.#allRepublishers) }
      this.#pid = pid
    }
    this.#consumers = consumers
    this.#republishers = republish
    add(this.#apiErrors, apiErrors)
  }

  get #allConsumers() {
    return this.#consumers.map(one => sumOf(this.#before.consumers.get(one.name), one))
  }

  get #allRepublishers() {
    return this.#republishers.map(one => republishedBy(this.#before.republishers.get(one.name), one))
  }

  /** @returns {ConsumersFigures | null} null: there are no consumers */
  get consumers() {
    if (this.#consumers.length === 0) return null
    return { list: this.#allConsumers, api_errors: { ...this.#apiErrors } }
  }

  /** @returns {RepublisherFigures[] | null} null: there are no republishers */
  get republishers() {
    return this.#republishers.length === 0 ? null : this.#allRepublishers
  }
}
