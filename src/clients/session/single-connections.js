import { disconnects } from '../../base/errors.js'

/** @import { Control } from '../../channels/broker/contract.js' */
/** @import { Log } from '../../base/log.js' */
/** @import { Session } from './session.js' */

/** Until a claim is tried again, ms. */
const RETRY_MS = 500
/** Claims tried at once. */
const BATCH = 200

/**
 * Users with a single connection: each new one claims to be it, by an order to close the others. Of two that connect
 * at the same time the one whose order comes later stays. A claim made while the broker is out of reach is given when
 * it is back; then it concerns only connections that are older.
 */
export class SingleConnections {
  /** @type {Set<string>} client ids whose orders are on their way */
  #underway = new Set()
  /** @type {Set<Session>} whose claims the broker has not taken, oldest first */
  #waiting = new Set()
  #retrying = false
  #control
  #log

  /** @param {Control} control @param {Log} log */
  constructor(control, log) {
    this.#control = control
    this.#log = log
  }

  /** @param {Session} session that has connected */
  claim(session) {
    this.#underway.add(session.id)
    this.#order(session, 0)
      .catch(error => {
        this.#log.warn({ err: error }, 'other connections of a user could not be closed yet')
        this.#waiting.add(session)
        this.#retry()
      })
      .finally(() => this.#underway.delete(session.id))
  }

  /** @param {Session} session @param {number} at see Control.order */
  #order({ user, id }, at) {
    const { code, reason } = disconnects.connectionLimit
    return this.#control.order('disconnect', { user, whitelist: [id], code, reason, claim: id }, { at })
  }

  /** @param {string} id of a client whose order has arrived: later orders of others concern it */
  arrived(id) {
    this.#underway.delete(id)
  }

  /** @param {Session} session @returns {boolean} whether it is newer than each order that has arrived */
  isNewest(session) {
    return this.#underway.has(session.id)
  }

  #retry() {
    if (this.#retrying) return
    this.#retrying = true
    setTimeout(async () => {
      for (const session of this.#waiting) if (session.closed) this.#waiting.delete(session)
      const batch = [...this.#waiting].slice(0, BATCH)
      await Promise.allSettled(
        batch.map(async session => {
          await this.#order(session, session.since)
          this.#waiting.delete(session)
        }),
      )
      this.#retrying = false
      if (this.#waiting.size > 0) this.#retry()
    }, RETRY_MS)
  }
}
