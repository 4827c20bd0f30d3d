// Status of users (docs/access.md): when they were last active and last connected.
//
//   rpc update_user_status -> one write a user and second; later ones wait for its end, or are answered by the first
//   connect, disconnect ----> `online`, in batches; at most one write a user and second
//   tick -------------------> `online` of all connected users, spread over a minute

import { setTimeout as wait } from 'node:timers/promises'
import { errors } from '../../base/errors.js'
import { Rotation } from '../../base/rotation.js'
import { payloadOf } from '../protocol/payload.js'
import { resumeAfter } from './ask.js'

/** @import { Log } from '../../base/log.js' */
/** @import { UserStatuses } from '../../channels/broker/contract.js' */
/** @import { Traffic } from '../../metrics/traffic.js' */
/** @import { Session } from './session.js' */
/** @import { Sessions } from './sessions.js' */

export const UPDATE_USER_STATUS = 'update_user_status'

const MAX_STATE_BYTES = 64
const MAX_USER_BYTES = 255
/** Time in which a user is written once, ms. */
const WINDOW_MS = 1000
/** Time in which users that connect or disconnect are collected, ms. */
const BATCH_MS = 100
const BATCH = 1000
/** Calls of `tick` until all users are renewed. */
const RENEW_TICKS = 60
/** Timeout of the last writes, ms. */
const END_MS = 1000

/** @param {string} user @returns {boolean} whether it may have a status: not an anonymous one, no long names */
export const mayHaveStatus = user =>
  user !== '' && (user.length * 3 <= MAX_USER_BYTES || Buffer.byteLength(user) <= MAX_USER_BYTES)

/** @param {any} state @returns {string | undefined} undefined: absent @throws {Error} errors.badRequest */
export function checkState(state) {
  if (state === undefined || state === null) return undefined
  if (typeof state !== 'string' || Buffer.byteLength(state) > MAX_STATE_BYTES) throw errors.badRequest
  return state
}

/**
 * The last write of a user in this second, and the state of the next one.
 * @typedef {{last: Promise<void>, next: Promise<void> | null, state: string, write: (written: Promise<void>) => void}} Recent
 */

export class UserStatus {
  #store
  #sessions
  #traffic
  #log
  /** Written by requests in this second. @type {Map<string, Recent>} */
  #recent = new Map()
  /** Whose `online` was written in this second, or is about to be. @type {Set<string>} */
  #seen = new Set()
  /** Whose `online` is about to be written. @type {string[]} */
  #online = []
  /** @type {NodeJS.Timeout | null} */
  #window = null
  /** @type {NodeJS.Timeout | null} */
  #flush = null
  /** @type {Rotation<string>} */
  #rotation
  #ticks = 0
  /** @type {Set<Promise<void>>} */
  #writes = new Set()

  /**
   * @param {object} parts @param {UserStatuses} parts.store @param {Sessions} parts.sessions
   * @param {Pick<Traffic, 'counts'>} parts.traffic @param {Pick<Log, 'warn'>} parts.log
   */
  constructor({ store, sessions, traffic, log }) {
    this.#store = store
    this.#sessions = sessions
    this.#traffic = traffic
    this.#log = log
    const users = {
      values: () => sessions.users(),
      get size() {
        return sessions.userCount
      },
    }
    this.#rotation = new Rotation(users, { ticks: RENEW_TICKS, batch: BATCH })
  }

  /** @param {string} user of a new connection */
  connected(user) {
    if (!mayHaveStatus(user) || this.#seen.has(user)) return
    this.#see(user)
    this.#online.push(user)
    this.#flush ??= setTimeout(() => this.#writeCollected(), BATCH_MS)
  }

  /** A connection has ended. @param {string} user */
  disconnected(user) {
    if (!this.#sessions.hasUser(user)) this.connected(user)
  }

  /** Call once a second: renews `online` of a share of all connected users. */
  tick() {
    const rotation = this.#rotation
    this.#ticks++
    if (!rotation.running && this.#ticks >= RENEW_TICKS) {
      rotation.start()
      this.#ticks = 0
    }
    if (rotation.running) rotation.tick(1, users => this.#writeOnline(users.filter(mayHaveStatus)))
  }

  /**
   * Sets `active` and `online` of a user.
   * @param {string} user @param {string | undefined} state
   * @returns {Promise<void>} rejects with errors.internal
   */
  update(user, state) {
    const recent = this.#recent.get(user)
    if (recent === undefined) return this.#write(user, state)
    if (state === undefined) return recent.last
    recent.state = state
    recent.next ??= new Promise(resolve => {
      recent.write = resolve
    })
    return recent.next
  }

  /** @param {string} user @param {string | undefined} state @returns {Promise<void>} */
  #write(user, state) {
    const last = this.#begin(this.#store.update([user], { active: true, online: true, state }))
    /** @type {Recent} */
    const recent = { last, next: null, state: '', write() {} }
    this.#recent.set(user, recent)
    this.#see(user)
    last.catch(() => {
      if (this.#recent.get(user) === recent && recent.next === null) this.#recent.delete(user)
    })
    return last
  }

  /** @param {string} user */
  #see(user) {
    this.#seen.add(user)
    this.#window ??= setTimeout(() => this.#endWindow(), WINDOW_MS)
  }

  #endWindow() {
    const ended = this.#recent
    this.#window = null
    this.#recent = new Map()
    this.#seen = new Set()
    for (const [user, { next, state, write }] of ended) if (next !== null) write(this.#write(user, state))
  }

  #writeCollected() {
    const users = this.#online
    this.#online = []
    this.#flush = null
    for (let at = 0; at < users.length; at += BATCH) this.#writeOnline(users.slice(at, at + BATCH))
  }

  /** @param {string[]} users */
  #writeOnline(users) {
    if (users.length === 0) return
    this.#begin(this.#store.update(users, { online: true })).catch(() => {
      this.#traffic.counts.user_status_dropped += users.length
      this.#log.warn({}, 'status of users not updated: the store does not answer')
    })
  }

  /** @param {Promise<void>} write @returns {Promise<void>} */
  #begin(write) {
    this.#writes.add(write)
    const end = () => this.#writes.delete(write)
    write.then(end, end)
    return write
  }

  /** Writes what waits, when the clients are disconnected. */
  async end() {
    this.#writeCollected()
    this.#endWindow()
    const late = new AbortController()
    const limit = wait(END_MS, undefined, { signal: late.signal }).catch(() => {})
    await Promise.race([Promise.allSettled(this.#writes), limit])
    late.abort()
  }
}

/** @param {string | Buffer | undefined} data of the rpc @returns {string | undefined} its state @throws {Error} errors.badRequest */
function stateOf(data) {
  const payload = payloadOf(data)
  if (payload.data.length === 0) return undefined
  if (!payload.json || !payload.object) throw errors.badRequest
  return checkState(JSON.parse(payload.data.toString()).state)
}

/**
 * The rpc of a client.
 * @param {Session} session @param {number} id @param {string | Buffer | undefined} data @param {UserStatus} userStatus
 */
export function updateUserStatus(session, id, data, userStatus) {
  const { user, codec } = session
  if (user === '') throw errors.permissionDenied
  if (!mayHaveStatus(user)) throw errors.badRequest
  resumeAfter(session, id, userStatus.update(user, stateOf(data)), () => session.send(codec.empty(id, 'rpc')))
}
