/** @import { Lifecycle } from '../../clients/hooks/contract.js' */
/** @import { Session } from '../../clients/session/session.js' */
/** @import { Sessions } from '../../clients/session/sessions.js' */
/** @import { ClientReport, FromWorker, Message } from '../messages.js' */

/** Delay to batch changes in one message, ms. */
const BATCH_MS = 20
/** Maximum pending reports, bytes; further ones are dropped and counted. */
const MAX_BYTES = 1024 * 1024
/** Approximate bytes per report, without strings. */
const REPORT_BYTES = 200

/**
 * Reports connects and disconnects of clients to the primary, while the embedding program listens to them. One message
 * is in flight at a time; later reports wait.
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

  /**
   * @param {(message: Message<Pick<FromWorker, 'clients'>>, done: () => void) => void} send `done`: sent or failed
   */
  constructor(send) {
    this.#send = send
  }

  /** @returns {Lifecycle | null} null: no listeners */
  get observer() {
    return this.on ? this.#observer : null
  }

  /**
   * @param {'connected' | 'disconnected'} event
   * @param {Session} session
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

  /** Sends pending reports, unless a message is in flight. */
  flush() {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    if (this.#sending || (this.#waiting.length === 0 && this.#dropped === 0)) return
    const message = {
      type: /** @type {const} */ ('clients'),
      reports: this.#waiting,
      dropped: this.#dropped,
    }
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

/**
 * Sends the number of open sessions to the primary on each change while there is a limit.
 * @param {Sessions} sessions
 * @param {() => number} limit of connections; 0 = none
 * @param {(count: number) => void} send
 * @returns {() => void} call it when the limit may have changed
 */
export function sendConnectionCount(sessions, limit, send) {
  let sent = 0
  /** @type {NodeJS.Timeout | null} */
  let timer = null
  const sendNow = () => {
    timer = null
    if (sessions.open !== sent && limit() > 0) send((sent = sessions.open))
  }
  const changed = () => {
    if (timer === null && limit() > 0) timer = setTimeout(sendNow, BATCH_MS)
  }
  sessions.onOpenChange = changed
  return changed
}
