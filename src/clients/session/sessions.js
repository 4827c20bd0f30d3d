import { SlicedQueue, SlicedVisits } from '../../base/slices.js'
import { Timer } from '../../base/timers.js'
import { Heartbeat } from './heartbeat.js'

/** @import { TimerWheel } from '../../base/timers.js' */
/** @import { Session } from './session.js' */

/** Sessions opened within this period share a timer. */
const OPENED_TOGETHER_MS = 100

class OpenedSessions extends Timer {
  /** @type {Session[]} */
  sessions = []
  #owner

  /** @param {Sessions} owner @param {number} deadline unix ms */
  constructor(owner, deadline) {
    super()
    this.#owner = owner
    this.deadline = deadline
  }

  onTimer() {
    this.#owner.deadlinePassed(this)
  }
}

export class Sessions {
  /** @type {Map<string, Session | Set<Session>>} user -> connected sessions, except anonymous ones */
  #users = new Map()
  /** @type {Set<OpenedSessions>} oldest first */
  #opened = new Set()
  /** @type {OpenedSessions | null} */
  #lastOpened = null
  /** @type {SlicedVisits<any>} of sessions past their connect deadline */
  #stale = new SlicedVisits()
  #ended = new SlicedQueue((/** @type {Session} */ session) => session.release())
  /** @type {Map<string, Session>} by session id; only sessions with an id */
  #bySessionId = new Map()
  /** @type {Map<string, Session> | null} client id -> connected session; null: not needed yet */
  #byClient = null
  /** @type {SlicedVisits<Session>} */
  #visits = new SlicedVisits()
  count = 0
  anonymous = 0
  accepts = 0
  connects = 0
  /** Open sessions, connected or not. */
  open = 0
  onOpenChange = () => {}

  /**
   * @param {object} options times in ms @param {number} options.pingInterval @param {number} options.pongTimeout
   * @param {number} options.staleDelay 0 = no connect deadline
   * @param {TimerWheel} options.timers @param {() => number} options.clock
   */
  constructor({ pingInterval, pongTimeout, staleDelay, timers, clock }) {
    this.heartbeat = new Heartbeat(pingInterval, pongTimeout)
    this.staleDelay = staleDelay
    this.timers = timers
    this.clock = clock
  }

  /** @param {Session} session */
  opened(session) {
    this.open++
    this.accepts++
    this.onOpenChange()
    if (session.sessionId !== '') this.#bySessionId.set(session.sessionId, session)
    if (this.staleDelay === 0) return
    const deadline = Math.ceil((this.clock() + this.staleDelay) / OPENED_TOGETHER_MS) * OPENED_TOGETHER_MS
    let batch = this.#lastOpened
    if (batch === null || batch.deadline !== deadline) {
      this.#lastOpened = batch = new OpenedSessions(this, deadline)
      this.#opened.add(batch)
      this.timers.schedule(batch, deadline)
    }
    batch.sessions.push(session)
  }

  /** @param {OpenedSessions} batch */
  deadlinePassed(batch) {
    if (this.#lastOpened === batch) this.#lastOpened = null
    this.#stale.add(batch.sessions, session => session.closeIfStale())
    this.#stale.add([batch], () => this.#opened.delete(batch))
  }

  /** @param {Session} session */
  connected(session) {
    this.count++
    this.connects++
    session.transport.traffic.connected(session.codec)
    this.heartbeat.add(session)
    this.#byClient?.set(session.id, session)
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

  /** @param {Session} session @param {boolean} wasConnected */
  closed(session, wasConnected) {
    this.#ended.add(session)
    this.open--
    this.onOpenChange()
    if (session.sessionId !== '') this.#bySessionId.delete(session.sessionId)
    if (!wasConnected) return
    this.count--
    session.transport.traffic.left(session.codec)
    this.heartbeat.remove(session)
    this.#byClient?.delete(session.id)
    if (session.user === '') this.anonymous--
    const own = this.#users.get(session.user)
    if (own === session) this.#users.delete(session.user)
    else if (own instanceof Set && own.delete(session) && own.size === 0) this.#users.delete(session.user)
  }

  get releasing() {
    return this.#ended.size > 0
  }

  /** @param {string} sessionId @returns {Session | undefined} connected or not */
  find(sessionId) {
    return this.#bySessionId.get(sessionId)
  }

  /** Begins to index connected sessions by client id. */
  indexClients() {
    if (this.#byClient !== null) return
    const byClient = new Map()
    this.forEach(session => void byClient.set(session.id, session))
    this.#byClient = byClient
  }

  /** @param {string} id @returns {Session | undefined} connected */
  client(id) {
    this.indexClients()
    return this.#byClient?.get(id)
  }

  users() {
    return this.#users.keys()
  }

  get userCount() {
    return this.#users.size
  }

  /** @param {string} user not anonymous */
  hasUser(user) {
    return this.#users.has(user)
  }

  /** @param {(session: Session) => void} visit must not open or close sessions */
  forEach(visit) {
    this.heartbeat.forEach(visit)
  }

  /** @returns {Session[]} sessions that are connected or may still connect */
  everyOpen() {
    const open = this.everyConnected()
    for (const { sessions } of this.#opened)
      for (const session of sessions) if (!session.connected && !session.closed) open.push(session)
    return open
  }

  /** @returns {Session[]} */
  everyConnected() {
    /** @type {Session[]} */
    const connected = []
    this.forEach(session => void connected.push(session))
    return connected
  }

  /**
   * @param {string} user '' = anonymous, or with `allUsers` everybody
   * @param {{client?: string, session?: string, allUsers?: boolean}} [narrow] by id
   */
  of(user, { client, session: sessionId, allUsers = false } = {}) {
    const everybody = allUsers && user === ''
    /** @type {Session[]} */
    const found = []
    const add = (/** @type {Session} */ session) => {
      if (!client || session.id === client) found.push(session)
    }
    if (sessionId) {
      const session = this.#bySessionId.get(sessionId)
      if (session?.connected && (everybody || session.user === user)) add(session)
      return found
    }
    if (user === '') {
      this.forEach(session => {
        if (everybody || session.user === '') add(session)
      })
    } else {
      const own = this.#users.get(user)
      if (own instanceof Set) own.forEach(add)
      else if (own) add(own)
    }
    return found
  }

  /**
   * Visits in slices; sessions may end before their visit.
   * @param {Session[]} sessions @param {(session: Session) => void} visit must not throw
   */
  visitInSlices(sessions, visit) {
    this.#visits.add(sessions, visit)
  }

  /** Calls `then` after all pending visits. @param {() => void} then must not throw */
  afterVisits(then) {
    if (!this.#visits.busy) return then()
    this.#visits.add(/** @type {any} */ ([null]), then)
  }
}
