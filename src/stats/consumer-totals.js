/** @import { ConsumerFigures, ConsumersFigures } from './schema.js' */

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

/** Figures of consumers since the start of the gateway: they do not fall when the queue process is replaced. */
export class ConsumerTotals {
  #pid = 0
  /** Of processes that have ended. @type {Map<string, ConsumerFigures>} */
  #before = new Map()
  /** @type {ConsumerFigures[]} */
  #now = []
  /** @type {Record<string, number>} */
  #apiErrors = {}

  /**
   * @param {number} pid of the process @param {ConsumerFigures[]} figures since its start
   * @param {Record<string, number>} apiErrors by code, since its last sample
   */
  update(pid, figures, apiErrors) {
    if (pid !== this.#pid) {
      this.#before = new Map(this.#list.map(one => [one.name, one]))
      this.#pid = pid
    }
    this.#now = figures
    add(this.#apiErrors, apiErrors)
  }

  get #list() {
    return this.#now.map(one => sumOf(this.#before.get(one.name), one))
  }

  /** @returns {ConsumersFigures | null} null: there are no consumers */
  read() {
    if (this.#pid === 0) return null
    return { list: this.#list, api_errors: { ...this.#apiErrors } }
  }
}
