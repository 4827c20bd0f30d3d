import { errors } from '../../errors.js'
import { nextItems } from '../shared.js'
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

/** The connections of one user at this worker. */
class Own {
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
export class Users {
  #placement
  #uid
  #lease
  #log
  /** Keys of the workers and of this one's connection. */
  #keys
  #connection = 0
  /** @type {Map<string, Own>} users with connections, or with counts that Redis may still have */
  #users = new Map()
  /** @type {Iterator<Own> | null} */
  #round = null
  #share = 0
  /** @type {Iterator<Own>} the rest of a rewrite */
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
   * @param {(error: Error | null, admitted: boolean) => void} done never called before this returns
   */
  claim(user, limit, done) {
    if (!this.#partition.up) return queueMicrotask(() => done(errors.internal, false))
    let own = this.#users.get(user)
    if (!own) this.#users.set(user, (own = new Own(user)))
    const held = own.count++
    const sent = ++own.sent
    this.#partition.run(
      userClaim,
      [this.#key(user), ...this.#keys],
      [this.#uid, this.#connection, held, limit, USER_TTL],
      (error, reply) => {
        const admitted = reply === 1
        if (!admitted) {
          own.count--
          // Later commands counted it as admitted.
          if (own.sent !== sent) this.#write([own], () => {})
          else if (!error) this.#release(own, sent)
        }
        done(error, admitted)
      },
    )
  }

  /** A claimed connection has ended. @param {string} user */
  release(user) {
    const own = this.#users.get(user)
    if (!own || own.count === 0) return
    own.count--
    this.#write([own], () => {})
  }

  /** Removes a user without connections, unless a later command is pending. @param {Own} own @param {number} sent */
  #release(own, sent) {
    if (own.count === 0 && own.sent === sent) this.#users.delete(own.user)
  }

  /** Extends the lease and writes counts. @param {Own[]} batch @param {(error: Error | null) => void} done */
  #write(batch, done) {
    const keys = batch.map(({ user }) => this.#key(user))
    const counts = batch.map(({ count }) => count)
    const sent = batch.map(own => ++own.sent)
    this.#partition.run(
      userWrite,
      [...this.#keys, ...keys],
      [this.#uid, this.#connection, this.#lease, USER_TTL, ...counts],
      (error, reply) => {
        if (!error) for (const [i, own] of batch.entries()) this.#release(own, sent[i])
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
    if (this.#round === null) {
      this.#round = this.#users.values()
      this.#share = 0
    }
    this.#share = Math.max(this.#share, Math.ceil(this.#users.size / ROUND))
    for (let left = Math.max(1, this.#share); left > 0 && this.#round; left -= BATCH) {
      const count = Math.min(left, BATCH)
      const batch = nextItems(this.#round, count)
      if (batch.length < count) this.#round = null
      this.#write(batch, () => {})
    }
  }

  /** The connection of a partition has come up, maybe to a server with other counts. @param {Partition} partition */
  up(partition) {
    if (partition !== this.#partition) return
    this.#connection++
    this.#write([], () => {})
    this.#rewrite()
  }
}
