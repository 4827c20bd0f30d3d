/** @typedef {import('./schema.js').GatewayEvent} GatewayEvent */

const KEPT = 100
/** What comes each second must not drive out what came once. */
const KEPT_OF_A_KIND = 20

/**
 * What has happened: since it was asked last, and lately.
 */
export class EventLog {
  /** @type {GatewayEvent[]} */
  #fresh = []
  /** @type {GatewayEvent[]} oldest first */
  #last = []

  /** @param {GatewayEvent} event */
  add(event) {
    this.#fresh.push(event)
    this.#last.push(event)
    const same = this.#last.filter(({ kind }) => kind === event.kind)
    if (same.length > KEPT_OF_A_KIND) this.#last.splice(this.#last.indexOf(same[0]), 1)
    else if (this.#last.length > KEPT) this.#last.shift()
  }

  /** @returns {GatewayEvent[]} those that it did not return before */
  take() {
    const fresh = this.#fresh
    this.#fresh = []
    return fresh
  }

  /** @returns {GatewayEvent[]} the last ones, oldest first, without those that `take` has yet to return: nobody is to see them twice */
  read() {
    return this.#last.filter(event => !this.#fresh.includes(event))
  }
}
