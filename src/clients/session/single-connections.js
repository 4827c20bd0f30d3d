import { disconnects } from '../../base/errors.js'

/** @import { Control } from '../../channels/broker/contract.js' */
/** @import { Log } from '../../base/log.js' */
/** @import { Session } from './session.js' */

const RETRY_MS = 500
/** Orders per retry. */
const BATCH = 200

/**
 * Users with a single connection: each new connection orders the others to close. Of two concurrent connections, the
 * one with the later order stays. While the broker is unreachable, orders wait; delayed orders close only older
 * connections.
 */
export class SingleConnections {
  /** @type {Set<string>} client ids whose orders have not arrived */
  #underway = new Set()
  /** @type {Set<Session>} with orders not accepted by the broker, oldest first */
  #waiting = new Set()
  #retrying = false
  #control
  #log

  /** @param {Control} control @param {Log} log */
  constructor(control, log) {
    this.#control = control
    this.#log = log
  }

  /** @param {Session} session connected */
  claim(session) {
    this.#underway.add(session.id)
    this.#order(session, 0)
      .catch(error => {
        this.#log.warn({ err: error }, 'closing other connections of a user failed, retrying')
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

  /** @param {string} id of a client with an arrived order: later orders close it */
  arrived(id) {
    this.#underway.delete(id)
  }

  /** @param {Session} session @returns {boolean} whether it is newer than all arrived orders */
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
