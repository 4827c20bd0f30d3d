import { SlicedQueue, SlicedVisits, SlicedWork } from '../../base/slices.js'
import { Timer } from '../../base/timers.js'
import { Heartbeat } from './heartbeat.js'

/** @import { TimerWheel } from '../../base/timers.js' */
/** @import { Session } from './session.js' */

/** Sessions opened within this time share a timer. */
const OPENED_TOGETHER_MS = 100

/** Sessions opened at about the same time, which must connect by the same time. */
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

/** The sessions of one worker, by user, session id and time of opening. */
export class Sessions {
  /** @type {Map<string, Session | Set<Session>>} user -> connected sessions, without anonymous ones */
  #users = new Map()
  /** @type {Set<OpenedSessions>} oldest first */
  #opened = new Set()
  /** @type {OpenedSessions | null} */
  #lastOpened = null
  /** @type {OpenedSessions[]} whose deadline has passed */
  #overdue = []
  #closeStale = new SlicedWork(() => this.#closeNextStale())
  /** Ended sessions: each releases what it holds, its subscriptions above all. */
  #ended = new SlicedQueue((/** @type {Session} */ session) => session.release())
  /** @type {Map<string, Session>} by session id; only sessions that have one */
  #bySessionId = new Map()
  /** @type {SlicedVisits<Session>} */
  #visits = new SlicedVisits()
  /** Connected sessions. */
  count = 0
  /** Connected sessions without a user id. */
  anonymous = 0
  /** Opened and connected sessions since the start. */
  accepts = 0
  connects = 0
  /** Open sessions, connected or not. */
  open = 0
  /** Called whenever `open` has changed. */
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
    this.#overdue.push(batch)
    this.#closeStale.run()
  }

  /** @returns {boolean} false: no batch is left */
  #closeNextStale() {
    const batch = this.#overdue.at(-1)
    if (batch === undefined) return false
    const session = batch.sessions.pop()
    if (session !== undefined) session.closeIfStale()
    else {
      this.#overdue.pop()
      this.#opened.delete(batch)
    }
    return true
  }

  /** @param {Session} session */
  connected(session) {
    this.count++
    this.connects++
    session.transport.traffic.connected(session.codec)
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

  /** @param {Session} session its resources are released soon @param {boolean} wasConnected */
  closed(session, wasConnected) {
    this.#ended.add(session)
    this.open--
    this.onOpenChange()
    if (session.sessionId !== '') this.#bySessionId.delete(session.sessionId)
    if (!wasConnected) return
    this.count--
    session.transport.traffic.left(session.codec)
    this.heartbeat.remove(session)
    if (session.user === '') this.anonymous--
    const own = this.#users.get(session.user)
    if (own === session) this.#users.delete(session.user)
    else if (own instanceof Set && own.delete(session) && own.size === 0) this.#users.delete(session.user)
  }

  /** Whether ended sessions wait for their release. */
  get releasing() {
    return this.#ended.size > 0
  }

  /** @param {string} sessionId @returns {Session | undefined} connected or not */
  find(sessionId) {
    return this.#bySessionId.get(sessionId)
  }

  /** Ids of connected users. */
  users() {
    return this.#users.keys()
  }

  /** @param {(session: Session) => void} visit must not open or close sessions */
  forEach(visit) {
    this.heartbeat.forEach(visit)
  }

  /** @returns {Session[]} connected sessions and those that may still connect */
  everyOpen() {
    /** @type {Session[]} */
    const open = []
    this.forEach(session => {
      open.push(session)
    })
    for (const { sessions } of this.#opened) {
      for (const session of sessions) if (!session.connected && !session.closed) open.push(session)
    }
    return open
  }

  /**
   * @param {string} user '' = anonymous
   * @param {{client?: string, session?: string}} narrow by client id, session id or both
   * @returns {Session[]}
   */
  of(user, { client, session: sessionId }) {
    /** @type {Session[]} */
    const found = []
    const add = (/** @type {Session} */ session) => {
      if (!client || session.id === client) found.push(session)
    }
    if (sessionId) {
      const session = this.#bySessionId.get(sessionId)
      if (session?.connected && session.user === user) add(session)
      return found
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

  /**
   * Visits sessions in slices, which may outlive some of them; visits of later calls follow.
   * @param {Session[]} sessions not changed meanwhile @param {(session: Session) => void} visit must not throw
   */
  visitInSlices(sessions, visit) {
    this.#visits.add(sessions, visit)
  }

  /** Calls `then` when all visits so far are done, at once if they are. @param {() => void} then must not throw */
  afterVisits(then) {
    if (!this.#visits.busy) return then()
    this.#visits.add(/** @type {any} */ ([null]), then)
  }
}
