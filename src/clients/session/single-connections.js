import { disconnects } from '../../base/errors.js'

/** @import { Control } from '../../channels/broker/contract.js' */
/** @import { Log } from '../../base/log.js' */
/** @import { Session } from './session.js' */

const RETRY_MS = 500
/** Orders per retry. */
const BATCH = 200

/** Rank of a connection among those of its user; ranks are compared as text. @param {number} time @param {string} id */
const rankOf = (time, id) => `${time.toFixed(4).padStart(20, '0')} ${id}`

/** Of a session. `own`: its rank, '': its order has not arrived; `rival`: the highest rank that arrived before. */
export class SingleClaim {
  own = ''
  rival = ''
}

/**
 * Users with a single connection: each new connection orders the others to close. The connection with the highest rank
 * stays: the one with the latest order, where an order that was delayed (its worker was frozen, or the broker
 * unreachable) counts from the time of the connection. All workers compare the same ranks, so exactly one stays,
 * whichever orders arrive first.
 */
export class SingleConnections {
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
    session.needExtra().claim = new SingleClaim()
    this.#order(session, false).catch(error => {
      this.#log.warn({ err: error }, 'closing other connections of a user failed, retrying')
      this.#waiting.add(session)
      this.#retry()
    })
  }

  /** @param {Session} session @param {boolean} late see Control.order */
  async #order(session, late) {
    const { user, id, since } = session
    const { code, reason } = disconnects.connectionLimit
    const [time] = await this.#control.order(
      'disconnect',
      { user, code, reason, claim: id },
      { at: since, late },
    )
    if (!session.closed && this.loses(session, id, time, 0)) session.close(disconnects.connectionLimit)
  }

  /**
   * Executes an order on one of the user's sessions.
   * @param {Session} session
   * @param {string} id of the client that stays
   * @param {number} time of the order, see Control.order
   * @param {number} before see BrokerEvents: for sessions that have no claim
   * @returns {boolean} whether the session must close
   */
  loses(session, id, time, before) {
    const claim = session.extra?.claim
    if (!claim) return session.since < before
    const rank = rankOf(time, id)
    if (session.id === id) {
      if (rank > claim.own) claim.own = rank
      return claim.rival > claim.own
    }
    if (claim.own !== '') return rank > claim.own
    if (rank > claim.rival) claim.rival = rank
    return false
  }

  #retry() {
    if (this.#retrying) return
    this.#retrying = true
    setTimeout(async () => {
      for (const session of this.#waiting) if (session.closed) this.#waiting.delete(session)
      const batch = [...this.#waiting].slice(0, BATCH)
      await Promise.allSettled(
        batch.map(async session => {
          await this.#order(session, true)
          this.#waiting.delete(session)
        }),
      )
      this.#retrying = false
      if (this.#waiting.size > 0) this.#retry()
    }, RETRY_MS)
  }
}
