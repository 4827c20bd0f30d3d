import { errors } from '../../errors.js'
import { nextItems } from '../shared.js'
import { presenceBeat, presenceChange, presenceOwn, presenceSweep } from './scripts.js'

/**
 * @typedef {import('./partition.js').Partition} Partition
 * @typedef {(error: Error | null) => void} Done
 */

/** Channels in one beat. */
const BATCH = 100
/** Clients written at once, so that other commands need not wait long. */
const MAX_WRITTEN = 1000
/** Redis holds no client of this worker in the channel. */
const NOTHING = 0
/** The state in Redis is unknown; equals no revision there. */
const UNKNOWN = -1

/**
 * @param {Partition} partition @param {string} channel
 * @returns {string[]} keys of its presence and of its present workers, see presence.lua
 */
export function keysOf(partition, channel) {
  return [partition.key('presence', channel), partition.key('presence-workers', channel)]
}

/** This worker's clients in one channel. */
class Own {
  /** @type {Map<string, string>} client id -> value, as in presence.lua */
  clients = new Map()
  /** Revision in Redis after the pending changes. */
  revision = NOTHING
  /** Pending changes. */
  underway = 0
  /** @type {Done[] | null} callbacks of a pending repair; null: none */
  waiting = null

  /** @param {string} channel */
  constructor(channel) {
    this.channel = channel
  }
}

/**
 * This worker's presence in the channels of one partition, kept in agreement with Redis.
 *
 * Each change carries a revision that Redis stores beside the entries, and Redis applies a change only to the revision
 * before it. So one number shows whether Redis holds the right entries, whatever was lost with a connection, a flush
 * or a failover; if it differs, the entries are compared and repaired.
 */
export class PartitionPresence {
  #partition
  #uid
  #ttl
  /** @type {Map<string, Own>} channels with clients, or with entries in Redis to be removed */
  #channels = new Map()
  #revision = NOTHING
  /** Ticks in which every channel's lease is extended once. */
  #ticks
  #rest
  /** @type {Iterator<Own> | null} the rest of this round */
  #round = null
  #share = 0
  /** Clients of lost workers that this worker has removed. */
  swept = 0

  /** @param {Partition} partition @param {{uid: string, ttl: number}} options `ttl` ms; of a worker that dies */
  constructor(partition, { uid, ttl }) {
    this.#partition = partition
    this.#uid = uid
    this.#ttl = ttl
    this.#ticks = Math.max(1, Math.floor(ttl / 3000))
    // Spread the partitions over the seconds.
    this.#rest = 1 + Math.floor(Math.random() * this.#ticks)
  }

  /**
   * @param {string} channel @param {string} client @param {string} value
   * @param {Done} done never called before this returns
   */
  add(channel, client, value, done) {
    if (!this.#partition.up) return queueMicrotask(() => done(errors.internal))
    const own = this.#open(channel)
    const former = own.clients.get(client)
    own.clients.set(client, value)
    this.#change(own, [], [client, value], error => {
      if (error && own.clients.get(client) === value) {
        if (former === undefined) own.clients.delete(client)
        else own.clients.set(client, former)
      }
      done(error)
    })
  }

  /** @param {string} channel @param {string} client */
  has(channel, client) {
    return this.#channels.get(channel)?.clients.has(client) === true
  }

  /** @param {string} channel @param {string} client */
  remove(channel, client) {
    const own = this.#channels.get(channel)
    if (own?.clients.delete(client)) this.#change(own, [client], [], () => {})
  }

  /** @param {string} channel @returns {Own} */
  #open(channel) {
    let own = this.#channels.get(channel)
    if (!own) this.#channels.set(channel, (own = new Own(channel)))
    return own
  }

  /** @param {Own} own removed if nobody is present and Redis knows it */
  #release(own) {
    if (own.clients.size > 0 || own.revision !== NOTHING || own.underway > 0 || own.waiting) return
    this.#channels.delete(own.channel)
  }

  /** @param {string} channel */
  #keys(channel) {
    return keysOf(this.#partition, channel)
  }

  /**
   * Sends a change that has been made to `own.clients`.
   * @param {Own} own @param {string[]} gone clients
   * @param {string[]} present client, value ...
   * @param {Done} done
   */
  #change(own, gone, present, done) {
    if (own.waiting) own.waiting.push(done)
    else if (own.revision === UNKNOWN) this.#repair(own, done)
    else {
      const lease = own.revision === NOTHING ? this.#ttl : 0
      this.#write(own, gone, present, lease, (error, made) => {
        if (error || made) done(error)
        else this.#repair(own, done)
      })
    }
  }

  /**
   * @param {Own} own @param {string[]} gone @param {string[]} present @param {number} lease ms, 0: unchanged
   * @param {(error: Error | null, made: boolean) => void} done not made: Redis has another revision
   */
  #write(own, gone, present, lease, done) {
    const before = own.revision
    own.revision = own.clients.size === 0 ? NOTHING : ++this.#revision
    own.underway++
    this.#partition.run(
      presenceChange,
      this.#keys(own.channel),
      [this.#uid, lease, before, own.revision, gone.length, ...gone, ...present],
      (error, reply) => {
        own.underway--
        if (error) own.revision = UNKNOWN
        done(error, reply === 1)
        this.#release(own)
      },
    )
  }

  /** Compares Redis with `clients` and repairs it. @param {Own} own @param {Done} done */
  #repair(own, done) {
    if (own.waiting) return own.waiting.push(done)
    own.waiting = [done]
    this.#partition.run(presenceOwn, this.#keys(own.channel).slice(0, 1), [this.#uid], (error, reply) => {
      if (!error) return this.#agree(own, reply)
      const waiting = own.waiting ?? []
      own.waiting = null
      own.revision = UNKNOWN
      settle(waiting, error)
    })
  }

  /** @param {Own} own @param {Buffer[]} reply of Redis: revision, then client, value ... */
  #agree(own, [revision, ...entries]) {
    const gone = []
    const known = new Set()
    for (let i = 0; i < entries.length; i += 2) {
      const client = String(entries[i])
      const value = own.clients.get(client)
      if (value === undefined) gone.push(client)
      else if (value === String(entries[i + 1])) known.add(client)
    }
    const present = []
    for (const [client, value] of own.clients) if (!known.has(client)) present.push(client, value)
    // Later changes follow the revision written now.
    const waiting = own.waiting ?? []
    own.waiting = null
    own.revision = Number(revision)
    let from = 0
    do {
      const until = from + 2 * MAX_WRITTEN
      const last = until >= present.length
      this.#write(own, from === 0 ? gone : [], present.slice(from, until), this.#ttl, (error, made) => {
        // No immediate retry: the next beat finds it.
        if (!made) own.revision = UNKNOWN
        if (last) settle(waiting, made ? null : (error ?? errors.internal))
      })
      from = until
    } while (from < present.length)
  }

  /** Called once a second: extends the leases of its share of all channels. */
  tick() {
    if (!this.#partition.up) return
    if (--this.#rest <= 0 && this.#round === null) {
      this.#rest = this.#ticks
      this.#round = this.#channels.values()
      this.#share = 0
    }
    if (this.#round === null) return
    this.#share = Math.max(this.#share, BATCH, Math.ceil(this.#channels.size / this.#ticks))
    for (let left = this.#share; left > 0 && this.#round; left -= BATCH) {
      const batch = nextItems(this.#round, Math.min(left, BATCH))
      if (batch.length < Math.min(left, BATCH)) this.#round = null
      this.#beat(batch, () => {})
    }
  }

  /** The connection is back, maybe to a server with other data. */
  up() {
    this.#check(this.#channels.values())
  }

  /** Checks batch by batch; missing entries are written meanwhile. @param {Iterator<Own>} rest */
  #check(rest) {
    const batch = nextItems(rest, BATCH)
    if (batch.length > 0) this.#beat(batch, error => error ?? this.#check(rest))
  }

  /** @param {Own[]} batch @param {Done} done */
  #beat(batch, done) {
    if (batch.length === 0) return
    const keys = batch.flatMap(({ channel }) => this.#keys(channel))
    const revisions = batch.map(({ revision }) => revision)
    this.#partition.run(presenceBeat, keys, [this.#uid, this.#ttl, ...revisions], (error, reply) => {
      if (!error) {
        const [lost, other, late] = reply
        for (const i of lost) this.#missing(batch[i])
        for (const i of other) this.#repair(batch[i], () => {})
        for (const i of late) this.#sweep(batch[i].channel)
        for (const own of batch) this.#release(own)
      }
      done(error)
    })
  }

  /** Writes everything, without a comparison: Redis holds nothing of this worker in the channel. @param {Own} own */
  #missing(own) {
    if (own.waiting) return
    own.waiting = []
    this.#agree(own, [Buffer.from('0')])
  }

  /** @param {string} channel in which other workers have left entries behind */
  #sweep(channel) {
    const partition = this.#partition
    const keys = [...this.#keys(channel), partition.key('channel', channel)]
    partition.run(presenceSweep, keys, [partition.publishCommand], (error, clients) => {
      if (!error) this.swept += clients
    })
  }
}

/** @param {Done[]} waiting @param {Error | null} error */
function settle(waiting, error) {
  for (const done of waiting) done(error)
}
