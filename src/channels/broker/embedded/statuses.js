// Status of users in the primary (docs/access.md).

import { Aged, RecencyList } from './recency.js'

/** @import { StatusChange } from '../contract.js' */

/** Users with a status. The least recently updated ones are dropped for new ones. */
export const MAX_USERS = 1_000_000

export class Status extends Aged {
  /** unix s; 0: never */
  active = 0
  online = 0
  state = ''
  /** unix s */
  expireAt = 0

  /** @param {string} user */
  constructor(user) {
    super()
    this.user = user
  }
}

/** @typedef {Pick<Status, 'user' | 'active' | 'online' | 'state' | 'expireAt' | 'usedAt'>} StoredStatus */

export class Statuses {
  /** @type {Map<string, Status>} */
  #byUser = new Map()
  /** @type {RecencyList<Status>} */
  #byAge = new RecencyList()
  #max
  #onFull

  /** @param {() => void} [onFull] a status is dropped before it expires @param {number} [max] users */
  constructor(onFull = () => {}, max = MAX_USERS) {
    this.#onFull = onFull
    this.#max = max
  }

  get size() {
    return this.#byUser.size
  }

  /** @param {string} user @param {StatusChange} change @param {number} now unix s @param {number} expireAt unix s */
  update(user, { active, online, state }, now, expireAt) {
    const status = this.#open(user, now, expireAt)
    if (active) status.active = now
    if (online) status.online = now
    if (state !== undefined) status.state = state
  }

  /** @param {string} user @param {number} now unix s @param {number} expireAt unix s @returns {Status} */
  #open(user, now, expireAt) {
    // An expired one that is not removed yet.
    if (this.get(user, now) === undefined) this.remove(user)
    let status = this.#byUser.get(user)
    if (status === undefined) {
      if (this.size >= this.#max) this.#dropOldest()
      this.#byUser.set(user, (status = new Status(user)))
    }
    this.#byAge.add(status, now)
    status.expireAt = expireAt
    return status
  }

  #dropOldest() {
    const { oldest } = this.#byAge
    if (oldest === null) return
    this.remove(oldest.user)
    this.#onFull()
  }

  /** @param {string} user @param {number} now unix s @returns {Status | undefined} */
  get(user, now) {
    const status = this.#byUser.get(user)
    return status === undefined || status.expireAt <= now ? undefined : status
  }

  /** @param {string} user */
  remove(user) {
    const status = this.#byUser.get(user)
    if (status === undefined) return
    this.#byUser.delete(user)
    this.#byAge.remove(status)
  }

  /** Adds one of a snapshot, the oldest first. @param {StoredStatus} stored @param {number} now unix s */
  restore({ user, active, online, state, expireAt, usedAt }, now) {
    if (expireAt <= now) return
    const status = this.#open(user, usedAt, expireAt)
    status.active = active
    status.online = online
    status.state = state
  }

  /** @param {number} now unix s */
  sweep(now) {
    const list = this.#byAge
    for (let { oldest } = list; oldest !== null && oldest.expireAt <= now; oldest = list.oldest)
      this.remove(oldest.user)
  }

  /** From the oldest to the newest. */
  [Symbol.iterator]() {
    return this.#byAge[Symbol.iterator]()
  }
}
