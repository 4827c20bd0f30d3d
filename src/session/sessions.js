import { Heartbeat } from './heartbeat.js'

/**
 * @typedef {import('./session.js').Session} Session
 */

/**
 * The sessions of one worker: by user, and by time.
 */
export class Sessions {
  /** @type {Map<string, Session | Set<Session>>} user -> connected sessions; anonymous ones are not listed */
  #users = new Map()
  /** @type {{session: Session, at: number}[]} opened, in the order in which their time to connect runs out */
  #opened = []
  #openedHead = 0
  /** Connected sessions. */
  count = 0
  /** Of those, the ones without a user id. */
  anonymous = 0
  /** Sessions whose transport is open, connected or not. */
  open = 0

  /**
   * @param {{pingInterval: number, pongTimeout: number, staleDelay: number, clock: () => number}} options times in ms
   */
  constructor({ pingInterval, pongTimeout, staleDelay, clock }) {
    this.heartbeat = new Heartbeat(pingInterval, pongTimeout)
    this.staleDelay = staleDelay
    this.clock = clock
  }

  /** @param {Session} session whose transport has opened */
  opened(session) {
    this.open++
    if (this.staleDelay > 0) this.#opened.push({ session, at: this.clock() + this.staleDelay })
  }

  /** @param {Session} session */
  connected(session) {
    this.count++
    this.heartbeat.add(session)
    const { user } = session
    if (user === '') {
      this.anonymous++
      return
    }
    const own = this.#users.get(user)
    if (own === undefined) this.#users.set(user, session)
    else if (own instanceof Set) own.add(session)
    else this.#users.set(user, new Set([own, session]))
  }

  /**
   * @param {Session} session
   * @param {boolean} wasConnected
   */
  closed(session, wasConnected) {
    this.open--
    if (!wasConnected) return
    this.count--
    this.heartbeat.remove(session)
    if (session.user === '') this.anonymous--
    const own = this.#users.get(session.user)
    if (own === session) this.#users.delete(session.user)
    else if (own instanceof Set && own.delete(session) && own.size === 0) this.#users.delete(session.user)
  }

  /** Ids of the users who are not anonymous. */
  users() {
    return this.#users.keys()
  }

  /** @param {(session: Session) => void} visit must not open or close sessions */
  forEach(visit) {
    this.heartbeat.forEach(visit)
  }

  /**
   * @param {string} user '' = the anonymous ones
   * @param {{client?: string}} narrow
   * @returns {Session[]}
   */
  of(user, { client }) {
    /** @type {Session[]} */
    const found = []
    const add = (/** @type {Session} */ session) => {
      if (!client || session.id === client) found.push(session)
    }
    if (user === '') {
      this.forEach(session => {
        if (session.user === '') add(session)
      })
    } else {
      const own = this.#users.get(user)
      if (own instanceof Set) own.forEach(add)
      else if (own) add(own)
    }
    return found
  }

  /** @param {number} now ms */
  closeStale(now) {
    const opened = this.#opened
    while (this.#openedHead < opened.length && opened[this.#openedHead].at <= now) {
      opened[this.#openedHead++].session.closeIfStale()
    }
    if (this.#openedHead > 1000 || this.#openedHead === opened.length) {
      this.#opened = opened.slice(this.#openedHead)
      this.#openedHead = 0
    }
  }
}
