/**
 * How many connections each user has, over all workers. Kept only while client.user_connection_limit is on.
 * @template L
 */
export class Users {
  /** @type {Map<string, number>} */
  #total = new Map()
  /** @type {Map<L, Map<string, number>>} */
  #byLink = new Map()

  /**
   * @param {string} user
   * @param {number} limit
   * @param {L} link
   * @returns {boolean} whether there is room for one more
   */
  claim(user, limit, link) {
    const total = this.#total.get(user) ?? 0
    if (total >= limit) return false
    this.#total.set(user, total + 1)
    let own = this.#byLink.get(link)
    if (!own) this.#byLink.set(link, (own = new Map()))
    own.set(user, (own.get(user) ?? 0) + 1)
    return true
  }

  /**
   * @param {string} user
   * @param {L} link
   */
  release(user, link) {
    const own = this.#byLink.get(link)
    if (!own?.has(user)) return
    this.#subtract(own, user, 1)
    this.#subtract(this.#total, user, 1)
  }

  /** @param {L} link */
  removeLink(link) {
    for (const [user, count] of this.#byLink.get(link) ?? []) this.#subtract(this.#total, user, count)
    this.#byLink.delete(link)
  }

  /**
   * @param {Map<string, number>} counts
   * @param {string} user
   * @param {number} count
   */
  #subtract(counts, user, count) {
    const left = (counts.get(user) ?? 0) - count
    if (left > 0) counts.set(user, left)
    else counts.delete(user)
  }
}
