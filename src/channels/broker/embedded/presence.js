/**
 * @template L
 * @typedef {object} Present one connection in a channel's presence
 * @property {L} link its worker
 * @property {string} user '' for all anonymous clients
 * @property {string} info ClientInfo as a byte string of JSON text
 * @property {boolean} leave announce a leave if the worker dies
 */

/**
 * The clients present in one channel. Their users are counted as they come and go, so that statistics take constant
 * time.
 * @template L
 */
export class Presence {
  /** @type {Map<string, Present<L>>} by client id */
  clients = new Map()
  /** @type {Map<string, number> | null} clients of each user; null below two clients: most channels are personal */
  #users = null

  get users() {
    return this.#users?.size ?? this.clients.size
  }

  /** @param {string} client @param {Present<L>} present */
  add(client, present) {
    this.remove(client)
    this.clients.set(client, present)
    if (this.#users !== null) this.#count(present.user, 1)
    else if (this.clients.size > 1) {
      this.#users = new Map()
      for (const { user } of this.clients.values()) this.#count(user, 1)
    }
  }

  /** @param {string} client @param {string} info byte string */
  update(client, info) {
    const present = this.clients.get(client)
    if (present !== undefined) present.info = info
  }

  /** @param {string} client */
  remove(client) {
    const present = this.clients.get(client)
    if (present === undefined) return
    this.clients.delete(client)
    if (this.clients.size <= 1) this.#users = null
    else this.#count(present.user, -1)
  }

  /** @param {string} user @param {1 | -1} change */
  #count(user, change) {
    const users = /** @type {Map<string, number>} */ (this.#users)
    const count = (users.get(user) ?? 0) + change
    if (count > 0) users.set(user, count)
    else users.delete(user)
  }
}
