/** @import { Lifecycle } from '../../clients/hooks/contract.js' */
/** @import { Session } from '../../clients/session/session.js' */

/** Delay in which reports become one message, ms. */
const BATCH_MS = 20
/** Reports that wait for the primary, bytes; further ones are dropped and counted. */
const MAX_BYTES = 1024 * 1024
/** Bytes of a report beside its texts, approximately. */
const REPORT_BYTES = 200

/**
 * @typedef {object} ClientReport
 * @property {'connected' | 'disconnected'} event
 * @property {{client: string, user: string, transport: string, code?: number, reason?: string}} about
 */

/**
 * Reports connects and disconnects of clients to the primary, while the embedding program listens to them. One message
 * is under way at a time; the reports of that time wait.
 */
export class ClientReports {
  /** Whether the program listens. */
  on = false
  #send
  /** @type {ClientReport[]} */
  #waiting = []
  #bytes = 0
  #dropped = 0
  #sending = false
  /** @type {NodeJS.Timeout | null} */
  #timer = null
  /** @type {Lifecycle} */
  #observer = {
    connected: session => this.#add('connected', session, null),
    subscribed() {},
    unsubscribed() {},
    disconnected: (session, end) => this.#add('disconnected', session, end),
  }

  /** @param {(message: object, done: () => void) => void} send to the primary; `done`: it has left, or cannot */
  constructor(send) {
    this.#send = send
  }

  /** @returns {Lifecycle | null} null: nobody listens */
  get observer() {
    return this.on ? this.#observer : null
  }

  /**
   * @param {'connected' | 'disconnected'} event @param {Session} session
   * @param {{code: number, reason: string} | null} end
   */
  #add(event, { id: client, user, transport: { name: transport } }, end) {
    const bytes = REPORT_BYTES + user.length
    if (this.#bytes + bytes > MAX_BYTES) {
      this.#dropped++
      return
    }
    this.#bytes += bytes
    const about = { client, user, transport }
    this.#waiting.push({
      event,
      about: end === null ? about : { ...about, code: end.code, reason: end.reason },
    })
    this.#timer ??= setTimeout(() => this.flush(), BATCH_MS)
  }

  /** Sends what waits, unless a message is under way. */
  flush() {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    if (this.#sending || (this.#waiting.length === 0 && this.#dropped === 0)) return
    const message = { type: 'clients', reports: this.#waiting, dropped: this.#dropped }
    this.#waiting = []
    this.#bytes = 0
    this.#dropped = 0
    this.#sending = true
    this.#send(message, () => {
      this.#sending = false
      this.flush()
    })
  }
}
