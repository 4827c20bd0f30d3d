// Connections per user, counted in Redis. Each worker has a lease and rewrites its counts: Redis may lose data.

import { errors } from '../../../base/errors.js'
import { nextItems, Rotation } from '../../../base/rotation.js'
import { userClaim, userWrite } from './scripts.js'

/** @import { ClaimDone } from '../contract.js' */
/** @import { RedisParts } from './engine.js' */
/** @import { Partition } from './partition.js' */

/** Time after a worker's last heartbeat until its connections no longer count, ms. */
const LEASE = 10_000
/** Expiry of a user not rewritten by any worker, ms. */
const USER_TTL = 15 * 60_000
/** Ticks to rewrite all users. */
const ROUND = 300
const BATCH = 200

class UserEntry {
  count = 0
  sent = 0

  /** @param {string} user */
  constructor(user) {
    this.user = user
  }
}

/** Connections per user over all nodes. Redis has a count per worker, valid for its lease. */
export class RedisUsers {
  #partition
  #uid
  #lease
  #log
  #keys
  #connection = 0
  /** @type {Map<string, UserEntry>} users with connections, or possibly with counts in Redis */
  #users = new Map()
  /** @type {Rotation<UserEntry>} */
  #rotation = new Rotation(this.#users, { ticks: ROUND, batch: BATCH })
  /** @type {Iterator<UserEntry>} the rest of a rewrite */
  #rest = this.#users.values()
  #rewriting = false

  /** @param {Pick<RedisParts, 'placement' | 'uid' | 'log'> & {lease?: number}} parts lease: ms */
  constructor({ placement: { control }, uid, lease = LEASE, log }) {
    this.#partition = control
    this.#uid = uid
    this.#lease = lease
    this.#log = log
    this.#keys = [control.key('users', 'workers'), control.key('users-line', uid)]
  }

  /** @param {string} user */
  #key(user) {
    return this.#partition.key('user', user)
  }

  /**
   * Counts a connection of a user, unless the limit is reached.
   * @param {string} user @param {number} limit @param {ClaimDone} done never called before this returns
   */
  claim(user, limit, done) {
    if (!this.#partition.up) return queueMicrotask(() => done(errors.internal, false))
    let entry = this.#users.get(user)
    if (!entry) this.#users.set(user, (entry = new UserEntry(user)))
    const held = entry.count++
    const sent = ++entry.sent
    const args = [this.#uid, this.#connection, held, limit, USER_TTL]
    this.#partition.run(userClaim, [this.#key(user), ...this.#keys], args, (error, reply) => {
      const admitted = reply === 1
      if (!admitted) {
        entry.count--
        // Later commands counted it as admitted.
        if (entry.sent !== sent) this.#write([entry], () => {})
        else if (!error) this.#forget(entry, sent)
      }
      done(error, admitted)
    })
  }

  /** A claimed connection closed. @param {string} user */
  release(user) {
    const entry = this.#users.get(user)
    if (!entry || entry.count === 0) return
    entry.count--
    this.#write([entry], () => {})
  }

  /** Removes a user without connections and newer commands. @param {UserEntry} entry @param {number} sent */
  #forget(entry, sent) {
    if (entry.count === 0 && entry.sent === sent) this.#users.delete(entry.user)
  }

  /** Extends the lease and writes counts. @param {UserEntry[]} batch @param {(error: Error | null) => void} done */
  #write(batch, done) {
    const keys = [...this.#keys, ...batch.map(({ user }) => this.#key(user))]
    const args = [this.#uid, this.#connection, this.#lease, USER_TTL, ...batch.map(({ count }) => count)]
    const sent = batch.map(entry => ++entry.sent)
    this.#partition.run(userWrite, keys, args, (error, reply) => {
      if (!error) for (const [i, entry] of batch.entries()) this.#forget(entry, sent[i])
      if (reply === 1) {
        // The lease expired or was lost, possibly with the counts.
        const { size } = this.#users
        if (size > 0) this.#log.info({ users: size }, 'user connection counts restored')
        this.#rewrite()
      }
      done(error)
    })
  }

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

  /** Call once a second: extends the lease, and rewrites a share of all users. */
  tick() {
    if (!this.#partition.up) return
    if (!this.#rotation.running) this.#rotation.start()
    this.#rotation.tick(1, batch => this.#write(batch, () => {}))
  }

  /** A partition is connected, possibly to a server with other counts. @param {Partition} partition */
  up(partition) {
    if (partition !== this.#partition) return
    this.#connection++
    this.#write([], () => {})
    this.#rewrite()
  }
}
