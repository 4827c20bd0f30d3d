import { errors } from '../../../base/errors.js'
import { nextItems, Rotation } from '../../../base/rotation.js'
import { replyTo } from './partition.js'
import * as scripts from './scripts.js'
import { presenceKeys as keysOf, RedisStates } from './states.js'

/** @import { Presence, Tracking } from '../contract.js' */
/** @import { RedisParts } from './engine.js' */
/** @import { Partition } from './partition.js' */

/** @typedef {(error: Error | null) => void} Done */

const TICK_MS = 1000
const CLIENT = 0x63 // c

const BATCH = 100
/** Maximum clients per write, to limit the delay of other commands. */
const MAX_WRITTEN = 1000
/** Redis holds no client of this worker in the channel. */
const NOTHING = 0
/** The state in Redis is unknown; never a revision there. */
const UNKNOWN = -1

class ChannelEntry {
  /** @type {Map<string, string>} client id -> value, as in presence.lua */
  clients = new Map()
  /** Revision in Redis after the pending changes. */
  revision = NOTHING
  pending = 0
  /** @type {Done[] | null} callbacks of a pending repair; null: none */
  waiting = null
  /** @type {Tracking | undefined} */
  tracking = undefined

  /** @param {string} channel */
  constructor(channel) {
    this.channel = channel
  }
}

/**
 * This worker's presence in the channels of one partition. Redis stores a revision with the entries and applies a
 * change only to the previous revision: comparing it shows whether the entries are correct after a lost connection, a
 * flush or a failover; if not, they are repaired.
 */
class PartitionPresence {
  #partition
  #uid
  #ttl
  #states
  /** @type {Map<string, ChannelEntry>} channels with clients, or with entries to remove from Redis */
  #channels = new Map()
  #revision = NOTHING
  /** Ticks to extend the leases of all channels. */
  #ticks
  #rest
  /** @type {Rotation<ChannelEntry>} */
  #rotation
  swept = 0

  /** @param {Partition} partition @param {string} uid @param {number} ttl of dead workers, ms @param {RedisStates} states */
  constructor(partition, uid, ttl, states) {
    this.#partition = partition
    this.#uid = uid
    this.#ttl = ttl
    this.#states = states
    this.#ticks = Math.max(1, Math.floor(ttl / 3000))
    // Spread the partitions over the seconds.
    this.#rest = 1 + Math.floor(Math.random() * this.#ticks)
    this.#rotation = new Rotation(this.#channels, { ticks: this.#ticks, batch: BATCH })
  }

  /**
   * @param {string} channel @param {string} client @param {string} value @param {Tracking | undefined} tracking
   * @param {Done} done not before this returns
   */
  add(channel, client, value, tracking, done) {
    if (!this.#partition.up) return queueMicrotask(() => done(errors.internal))
    const entry = this.#open(channel)
    entry.tracking = tracking
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

  /** After an error, repaired later. @param {string} channel @param {string} client @param {string} value */
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

  /** @param {ChannelEntry} entry removed if no client is present here or in Redis */
  #forget(entry) {
    if (entry.clients.size > 0 || entry.revision !== NOTHING || entry.pending > 0 || entry.waiting) return
    this.#channels.delete(entry.channel)
  }

  /**
   * Sends a change already applied to `entry.clients`.
   * @param {ChannelEntry} entry @param {string[]} removed clients
   * @param {string[]} present client, value ... @param {Done} done
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
    const keys = keysOf(this.#partition, entry.channel)
    const args = [this.#uid, lease, before, entry.revision, removed.length, ...removed, ...present]
    this.#follow(entry.channel, entry.tracking, keys, args)
    this.#partition.run(scripts.presenceChange, keys, args, (error, reply) => {
      entry.pending--
      if (error) entry.revision = UNKNOWN
      else if (typeof reply !== 'number') this.#states.changed(this.#partition, entry.channel, String(reply))
      done(error, !error && reply !== 0)
      this.#forget(entry)
    })
  }

  /** Compares Redis with `clients` and repairs it. @param {ChannelEntry} entry @param {Done} done */
  #repair(entry, done) {
    if (entry.waiting) return entry.waiting.push(done)
    entry.waiting = [done]
    const [key] = keysOf(this.#partition, entry.channel)
    this.#partition.run(scripts.presenceOwn, [key], [this.#uid], (error, reply) => {
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
      const gone = from === 0 ? removed : []
      this.#write(entry, gone, present.slice(from, until), this.#ttl, (error, applied) => {
        if (!applied) entry.revision = UNKNOWN
        if (last) callAll(waiting, applied ? null : (error ?? errors.internal))
      })
      from = until
    } while (from < present.length)
  }

  /** Call once a second: extends the leases of a share of all channels. */
  tick() {
    if (!this.#partition.up) return
    if (--this.#rest <= 0 && !this.#rotation.running) {
      this.#rest = this.#ticks
      this.#rotation.start()
    }
    if (this.#rotation.running) this.#rotation.tick(BATCH, batch => this.#beat(batch, () => {}))
  }

  up() {
    this.#check(this.#channels.values())
  }

  /** Checks in batches, writing missing entries. @param {Iterator<ChannelEntry>} rest */
  #check(rest) {
    const batch = nextItems(rest, BATCH)
    if (batch.length > 0) this.#beat(batch, error => error ?? this.#check(rest))
  }

  /** @param {ChannelEntry[]} batch @param {Done} done */
  #beat(batch, done) {
    if (batch.length === 0) return
    const tracked = batch.filter(({ tracking }) => tracking !== undefined)
    if (tracked.length > 0 && tracked.length < batch.length) {
      const others = batch.filter(({ tracking }) => tracking === undefined)
      this.#beat(tracked, error => (error ? done(error) : this.#beat(others, done)))
      return
    }
    const keys = batch.flatMap(({ channel }) => keysOf(this.#partition, channel))
    const args = [this.#uid, this.#ttl, tracked.length > 0 ? 1 : 0, ...batch.map(({ revision }) => revision)]
    this.#partition.run(scripts.presenceBeat, keys, args, (error, reply) => {
      if (!error) {
        const [lost, other, late] = reply
        for (const i of lost) this.#rewrite(batch[i])
        for (const i of other) this.#repair(batch[i], () => {})
        for (const i of late) this.sweep(batch[i].channel)
        for (const entry of batch) this.#forget(entry)
      }
      done(error)
    })
  }

  /** Writes all entries: Redis has none of this worker in the channel. @param {ChannelEntry} entry */
  #rewrite(entry) {
    if (entry.waiting) return
    entry.waiting = []
    this.#reconcile(entry, [Buffer.from('0')])
  }

  /**
   * Adds keys and arguments for the state of a tracked channel to those of a script.
   * @param {string} channel @param {Tracking | undefined} tracking @param {string[]} keys @param {(string | number)[]} args
   */
  #follow(channel, tracking, keys, args) {
    if (tracking === undefined) return
    const more = this.#states.change(this.#partition, channel, tracking)
    keys.push(...more.keys)
    args.push(...more.args)
  }

  /** @param {string} channel with entries of dead workers @param {Tracking | undefined} [tracking] */
  sweep(channel, tracking = this.#channels.get(channel)?.tracking) {
    const partition = this.#partition
    const keys = [...keysOf(partition, channel), partition.key('channel', channel)]
    const args = [partition.publishCommand]
    this.#follow(channel, tracking, keys, args)
    partition.run(scripts.presenceSweep, keys, args, (error, clients) => {
      if (!error) this.swept += clients
    })
  }
}

/** @param {Done[]} waiting @param {Error | null} error */
function callAll(waiting, error) {
  for (const done of waiting) done(error)
}

/**
 * Presence over all workers of all nodes. For each channel Redis stores the clients with their workers, and the
 * workers with their leases. A worker renews one lease per channel, not per client.
 * @implements {Presence}
 */
export class RedisPresence {
  #placement
  #uid
  #ttl
  #log
  /** @type {Map<Partition, PartitionPresence>} */
  #byPartition = new Map()
  /** @type {NodeJS.Timeout | undefined} */
  #timer
  states

  /**
   * @param {Pick<RedisParts, 'placement' | 'uid' | 'events' | 'log'> & {ttl: number, delay: number, partitions: number,
   *   send: (uid: string, message: string | Buffer) => void}} parts `ttl`: of dead workers' clients, ms; `delay`: until a
   *   channel is vacated, ms; `partitions`: of the states of channels; `send`: a message to another worker
   */
  constructor({ placement, uid, ttl, log, send, ...more }) {
    this.#placement = placement
    this.#uid = uid
    this.#ttl = ttl
    this.#log = log
    this.states = new RedisStates(
      { placement, uid, ttl, log, ...more },
      (partition, channel, tracking) => this.#ofPartition(partition).sweep(channel, tracking),
      send,
    )
  }

  start() {
    this.#timer = setInterval(() => this.tick(), TICK_MS)
  }

  close() {
    clearInterval(this.#timer)
    this.states.close()
  }

  /** @param {string} channel */
  #presenceOf(channel) {
    return this.#ofPartition(this.#placement.of(channel))
  }

  /** @param {Partition} partition */
  #ofPartition(partition) {
    let own = this.#byPartition.get(partition)
    if (!own) {
      own = new PartitionPresence(partition, this.#uid, this.#ttl, this.states)
      this.#byPartition.set(partition, own)
    }
    return own
  }

  /**
   * @param {string} channel @param {string} client @param {string} info ClientInfo as JSON text
   * @param {{leave: boolean, tracking?: Tracking}} wants leave: announce a leave if this worker dies
   * @param {Done} done not called before this returns; after an error the presence of the client is unchanged
   */
  add(channel, client, info, { leave, tracking }, done) {
    this.#presenceOf(channel).add(channel, client, this.#value(info, leave), tracking, done)
  }

  /** @param {string} info @param {boolean} leave @returns {string} as in presence.lua */
  #value(info, leave) {
    const { user } = JSON.parse(info)
    return `${this.#uid} ${leave ? 1 : 0} ${Buffer.byteLength(user)} ${user}${info}`
  }

  /** @type {Presence['update']} */
  update(channel, client, info) {
    const own = this.#presenceOf(channel)
    const former = own.get(channel, client)
    if (former === undefined) return
    const leave = former.startsWith('1', this.#uid.length + 1)
    own.update(channel, client, this.#value(info, leave))
  }

  /** @param {string} channel @param {string} client @returns {boolean} whether this worker added it */
  has(channel, client) {
    return this.#presenceOf(channel).get(channel, client) !== undefined
  }

  /** @param {string} channel @param {string} client */
  remove(channel, client) {
    this.#presenceOf(channel).remove(channel, client)
  }

  /** @type {Presence['list']} */
  async list(channel) {
    const partition = this.#placement.of(channel)
    const [presence, present] = keysOf(partition, channel)
    // Returning the long list from a script would triple its cost.
    const [entries, workers] = await Promise.all([
      replyTo(done => partition.send('hgetall', [presence], done)),
      replyTo(done => partition.run(scripts.presenceAlive, [present], [], done)),
    ])
    const alive = new Set(workers.map(String))
    /** @type {Map<string, string>} */
    const clients = new Map()
    for (let i = 0; i < entries.length; i += 2) {
      const field = entries[i]
      if (field[0] !== CLIENT) continue
      const value = entries[i + 1]
      const worker = value.indexOf(' ')
      if (!alive.has(value.latin1Slice(0, worker))) continue
      // See presence.lua: '<worker> <leave> <bytes of user> <user><info>'
      const user = value.indexOf(' ', worker + 3) + 1
      const info = user + Number(value.latin1Slice(worker + 3, user - 1))
      clients.set(field.utf8Slice(1, field.length), value.utf8Slice(info, value.length))
    }
    return clients
  }

  /** @type {Presence['stats']} */
  async stats(channel) {
    const partition = this.#placement.of(channel)
    const keys = keysOf(partition, channel)
    const [clients, users] = await replyTo(done => partition.run(scripts.presenceStats, keys, [], done))
    return { clients, users }
  }

  tick() {
    let swept = 0
    for (const own of this.#byPartition.values()) {
      own.tick()
      swept += own.swept
      own.swept = 0
    }
    this.states.tick()
    if (swept > 0) this.#log.info({ clients: swept }, 'removed the presence of exited workers')
  }

  /** Call when the partition is connected. @param {Partition} partition */
  up(partition) {
    this.#byPartition.get(partition)?.up()
  }
}
