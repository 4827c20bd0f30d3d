import { errors } from '../../../base/errors.js'
import { nextItems, Rotation } from './rotation.js'
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
class ChannelEntry {
  /** @type {Map<string, string>} client id -> value, as in presence.lua */
  clients = new Map()
  /** Revision in Redis after the pending changes. */
  revision = NOTHING
  /** Pending changes. */
  pending = 0
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
  /** @type {Map<string, ChannelEntry>} channels with clients, or with entries in Redis to be removed */
  #channels = new Map()
  #revision = NOTHING
  /** Ticks in which every channel's lease is extended once. */
  #ticks
  /** Ticks until the next round. */
  #rest
  /** @type {Rotation<ChannelEntry>} */
  #rotation
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
    this.#rotation = new Rotation(this.#channels, { ticks: this.#ticks, batch: BATCH })
  }

  /**
   * @param {string} channel @param {string} client @param {string} value
   * @param {Done} done never called before this returns
   */
  add(channel, client, value, done) {
    if (!this.#partition.up) return queueMicrotask(() => done(errors.internal))
    const entry = this.#open(channel)
    const former = entry.clients.get(client)
    entry.clients.set(client, value)
    this.#change(entry, [], [client, value], error => {
      if (error && entry.clients.get(client) === value) {
        if (former === undefined) entry.clients.delete(client)
        else entry.clients.set(client, former)
      }
      done(error)
    })
  }

  /**
   * Replaces the value of a present client. After an error it is written with the next repair.
   * @param {string} channel @param {string} client @param {string} value
   */
  update(channel, client, value) {
    const entry = this.#open(channel)
    entry.clients.set(client, value)
    this.#change(entry, [], [client, value], () => {})
  }

  /** @param {string} channel @param {string} client @returns {string | undefined} its value; undefined: not present */
  get(channel, client) {
    return this.#channels.get(channel)?.clients.get(client)
  }

  /** @param {string} channel @param {string} client */
  remove(channel, client) {
    const entry = this.#channels.get(channel)
    if (entry?.clients.delete(client)) this.#change(entry, [client], [], () => {})
  }

  /** @param {string} channel @returns {ChannelEntry} */
  #open(channel) {
    let entry = this.#channels.get(channel)
    if (!entry) this.#channels.set(channel, (entry = new ChannelEntry(channel)))
    return entry
  }

  /** @param {ChannelEntry} entry removed if nobody is present and Redis knows it */
  #forget(entry) {
    if (entry.clients.size > 0 || entry.revision !== NOTHING || entry.pending > 0 || entry.waiting) return
    this.#channels.delete(entry.channel)
  }

  /** @param {string} channel */
  #keys(channel) {
    return keysOf(this.#partition, channel)
  }

  /**
   * Sends a change that has been applied to `entry.clients`.
   * @param {ChannelEntry} entry @param {string[]} removed clients
   * @param {string[]} present client, value ...
   * @param {Done} done
   */
  #change(entry, removed, present, done) {
    if (entry.waiting) entry.waiting.push(done)
    else if (entry.revision === UNKNOWN) this.#repair(entry, done)
    else {
      const lease = entry.revision === NOTHING ? this.#ttl : 0
      this.#write(entry, removed, present, lease, (error, applied) => {
        if (error || applied) done(error)
        else this.#repair(entry, done)
      })
    }
  }

  /**
   * @param {ChannelEntry} entry @param {string[]} removed @param {string[]} present
   * @param {number} lease ms, 0: unchanged
   * @param {(error: Error | null, applied: boolean) => void} done not applied: Redis has another revision
   */
  #write(entry, removed, present, lease, done) {
    const before = entry.revision
    entry.revision = entry.clients.size === 0 ? NOTHING : ++this.#revision
    entry.pending++
    this.#partition.run(
      presenceChange,
      this.#keys(entry.channel),
      [this.#uid, lease, before, entry.revision, removed.length, ...removed, ...present],
      (error, reply) => {
        entry.pending--
        if (error) entry.revision = UNKNOWN
        done(error, reply === 1)
        this.#forget(entry)
      },
    )
  }

  /** Compares Redis with `clients` and repairs it. @param {ChannelEntry} entry @param {Done} done */
  #repair(entry, done) {
    if (entry.waiting) return entry.waiting.push(done)
    entry.waiting = [done]
    this.#partition.run(presenceOwn, this.#keys(entry.channel).slice(0, 1), [this.#uid], (error, reply) => {
      if (!error) return this.#reconcile(entry, reply)
      const waiting = entry.waiting ?? []
      entry.waiting = null
      entry.revision = UNKNOWN
      callAll(waiting, error)
    })
  }

  /** @param {ChannelEntry} entry @param {Buffer[]} reply of Redis: revision, then client, value ... */
  #reconcile(entry, [revision, ...entries]) {
    const removed = []
    const known = new Set()
    for (let i = 0; i < entries.length; i += 2) {
      const client = String(entries[i])
      const value = entry.clients.get(client)
      if (value === undefined) removed.push(client)
      else if (value === String(entries[i + 1])) known.add(client)
    }
    const present = []
    for (const [client, value] of entry.clients) if (!known.has(client)) present.push(client, value)
    // Later changes follow the revision written now.
    const waiting = entry.waiting ?? []
    entry.waiting = null
    entry.revision = Number(revision)
    let from = 0
    do {
      const until = from + 2 * MAX_WRITTEN
      const last = until >= present.length
      this.#write(
        entry,
        from === 0 ? removed : [],
        present.slice(from, until),
        this.#ttl,
        (error, applied) => {
          // No immediate retry: the next beat finds it.
          if (!applied) entry.revision = UNKNOWN
          if (last) callAll(waiting, applied ? null : (error ?? errors.internal))
        },
      )
      from = until
    } while (from < present.length)
  }

  /** Called once a second: extends the leases of its share of all channels. */
  tick() {
    if (!this.#partition.up) return
    if (--this.#rest <= 0 && !this.#rotation.running) {
      this.#rest = this.#ticks
      this.#rotation.start()
    }
    if (this.#rotation.running) this.#rotation.tick(BATCH, batch => this.#beat(batch, () => {}))
  }

  /** The connection is back, maybe to a server with other data. */
  up() {
    this.#check(this.#channels.values())
  }

  /** Checks batch by batch; missing entries are written meanwhile. @param {Iterator<ChannelEntry>} rest */
  #check(rest) {
    const batch = nextItems(rest, BATCH)
    if (batch.length > 0) this.#beat(batch, error => error ?? this.#check(rest))
  }

  /** @param {ChannelEntry[]} batch @param {Done} done */
  #beat(batch, done) {
    if (batch.length === 0) return
    const keys = batch.flatMap(({ channel }) => this.#keys(channel))
    const revisions = batch.map(({ revision }) => revision)
    this.#partition.run(presenceBeat, keys, [this.#uid, this.#ttl, ...revisions], (error, reply) => {
      if (!error) {
        const [lost, other, late] = reply
        for (const i of lost) this.#rewrite(batch[i])
        for (const i of other) this.#repair(batch[i], () => {})
        for (const i of late) this.#sweep(batch[i].channel)
        for (const entry of batch) this.#forget(entry)
      }
      done(error)
    })
  }

  /** Writes all entries: Redis holds none of this worker in the channel. @param {ChannelEntry} entry */
  #rewrite(entry) {
    if (entry.waiting) return
    entry.waiting = []
    this.#reconcile(entry, [Buffer.from('0')])
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
function callAll(waiting, error) {
  for (const done of waiting) done(error)
}
