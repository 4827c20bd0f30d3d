// Connections of users, counted in Redis. The embedded engine shares no part of it: its counts (Users in
// embedded/control.js) are in one process, which sees the end of every worker. Here a worker may vanish unseen and
// Redis may lose data, so each worker has a lease and writes its counts again.

import { errors } from '../../../base/errors.js'
import { nextItems, Rotation } from './rotation.js'
import { userClaim, userWrite } from './scripts.js'

/** @typedef {import('./partition.js').Partition} Partition */

/** ms after the last heartbeat of a worker until its connections no longer count. */
const LEASE = 10_000
/** ms until a user that no worker writes again expires in Redis. */
const USER_TTL = 15 * 60_000
/** Ticks in which every user is written once again. */
const ROUND = 300
/** Users written at once. */
const BATCH = 200

/** The connections of one user to this worker. */
class UserEntry {
  /** Connections, pending claims included. */
  count = 0
  /** Commands sent about the user. */
  sent = 0

  /** @param {string} user */
  constructor(user) {
    this.user = user
  }
}

/**
 * Connections of each user over all workers of all nodes. Redis holds a count for each worker of a user, and the
 * worker's lease: when it has expired, the counts of a dead worker are void.
 */
export class RedisUsers {
  #placement
  #uid
  #lease
  #log
  /** Keys of the workers and of this one's connection. */
  #keys
  #connection = 0
  /** @type {Map<string, UserEntry>} users with connections, or with counts that Redis may still have */
  #users = new Map()
  /** @type {Rotation<UserEntry>} */
  #rotation = new Rotation(this.#users, { ticks: ROUND, batch: BATCH })
  /** @type {Iterator<UserEntry>} the rest of a rewrite */
  #rest = this.#users.values()
  #rewriting = false

  /**
   * @param {object} options @param {import('./placement.js').Placement} options.placement @param {string} options.uid
   * @param {number} [options.lease] ms until the connections of a dead worker no longer count
   * @param {import('pino').Logger} options.log
   */
  constructor({ placement, uid, lease = LEASE, log }) {
    this.#placement = placement
    this.#uid = uid
    this.#lease = lease
    this.#log = log
    const { control } = placement
    this.#keys = [control.key('users', 'workers'), control.key('users-line', uid)]
  }

  get #partition() {
    return this.#placement.control
  }

  /** @param {string} user */
  #key(user) {
    return this.#partition.key('user', user)
  }

  /**
   * Counts a connection of a user, unless the limit is reached.
   * @param {string} user @param {number} limit
   * @param {import('../contract.js').ClaimDone} done never called before this returns
   */
  claim(user, limit, done) {
    if (!this.#partition.up) return queueMicrotask(() => done(errors.internal, false))
    let entry = this.#users.get(user)
    if (!entry) this.#users.set(user, (entry = new UserEntry(user)))
    const held = entry.count++
    const sent = ++entry.sent
    this.#partition.run(
      userClaim,
      [this.#key(user), ...this.#keys],
      [this.#uid, this.#connection, held, limit, USER_TTL],
      (error, reply) => {
        const admitted = reply === 1
        if (!admitted) {
          entry.count--
          // Later commands counted it as admitted.
          if (entry.sent !== sent) this.#write([entry], () => {})
          else if (!error) this.#forget(entry, sent)
        }
        done(error, admitted)
      },
    )
  }

  /** A claimed connection has ended. @param {string} user */
  release(user) {
    const entry = this.#users.get(user)
    if (!entry || entry.count === 0) return
    entry.count--
    this.#write([entry], () => {})
  }

  /**
   * Removes a user without connections if no later command is pending.
   * @param {UserEntry} entry
   * @param {number} sent
   */
  #forget(entry, sent) {
    if (entry.count === 0 && entry.sent === sent) this.#users.delete(entry.user)
  }

  /** Extends the lease and writes counts. @param {UserEntry[]} batch @param {(error: Error | null) => void} done */
  #write(batch, done) {
    const keys = batch.map(({ user }) => this.#key(user))
    const counts = batch.map(({ count }) => count)
    const sent = batch.map(entry => ++entry.sent)
    this.#partition.run(
      userWrite,
      [...this.#keys, ...keys],
      [this.#uid, this.#connection, this.#lease, USER_TTL, ...counts],
      (error, reply) => {
        if (!error) for (const [i, entry] of batch.entries()) this.#forget(entry, sent[i])
        if (reply === 1) this.#lost()
        done(error)
      },
    )
  }

  /** The lease had expired, or Redis has lost it: the counts may be lost as well. */
  #lost() {
    if (this.#users.size > 0)
      this.#log.info({ users: this.#users.size }, 'connections of users are counted again')
    this.#rewrite()
  }

  /** Writes all users, batch by batch; starts over if a rewrite is running. */
  #rewrite() {
    this.#rest = this.#users.values()
    if (!this.#rewriting) this.#writeNext()
  }

  #writeNext() {
    const batch = nextItems(this.#rest, BATCH)
    this.#rewriting = batch.length > 0
    if (!this.#rewriting) return
    this.#write(batch, error => {
      if (error) this.#rewriting = false
      else this.#writeNext()
    })
  }

  /** Called once a second: extends the lease, and writes its share of all users again. */
  tick() {
    if (!this.#partition.up) return
    if (!this.#rotation.running) this.#rotation.start()
    this.#rotation.tick(1, batch => this.#write(batch, () => {}))
  }

  /** The connection of a partition has come up, maybe to a server with other counts. @param {Partition} partition */
  up(partition) {
    if (partition !== this.#partition) return
    this.#connection++
    this.#write([], () => {})
    this.#rewrite()
  }
}
