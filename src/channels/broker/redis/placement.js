// Location of a channel's data: Placement selects the shard and the partition, a shard the connection.

import { askView, queryServer, slotOf } from './address.js'
import { Connection } from './connection.js'
import { dispatch, Partition } from './partition.js'

/** @import { RedisOptions } from 'ioredis' */
/** @import { Logger } from 'pino' */
/** @import { HostPort } from '../../../config/redis-shards.js' */
/** @import { ClusterServer, ClusterView, Target } from './address.js' */

/**
 * @typedef {object} ShardEvents
 * @property {(partition: Partition) => void} up its (new or same) connection is usable and has no subscriptions
 * @property {(partition: Partition) => void} down pending commands have failed, subscriptions have ended
 * @property {(channel: string, message: Buffer) => void} channelMessage valid only during the call
 * @property {(topic: string, message: Buffer) => void} controlMessage message on another topic, without the prefix
 *
 * @typedef {{name: string, partitions: Partition[], up: boolean, connect: () => void, close: () => void}} Shard one
 *   Redis deployment: a server, a sentinel set or a cluster; `up`: all of it is reachable
 */

/** Interval (ms) of slot queries to each master in a stable cluster. */
const PERIOD = 5000
/** Interval (ms) while a partition has no server. */
const FIRST_WAIT = 50
const MAX_WAIT = 1000
const MAX_QUERIES = 3
/** A master without slots is disconnected if no view has listed it for this time (ms). */
const FORGET = 10_000
/** Shorter outages (ms), as when a slot moves, are not logged. */
const REPORT_AFTER = 500
const ZERO = 0x30

/** One Redis server, or the master of a sentinel set. @implements {Shard} */
export class SingleShard {
  #connection
  #reported = false

  /** @param {Target} target @param {string} prefix @param {ShardEvents} events @param {Logger} log */
  constructor({ name, options }, prefix, events, log) {
    this.name = name
    const partition = new Partition(`${prefix}.`, false)
    const prefixLength = Buffer.byteLength(partition.prefix)
    this.#connection = new Connection(
      name,
      options,
      {
        up: () =>
          partition.join(error => {
            if (!error) events.up(partition)
            else if (this.#connection.up) this.#connection.reset('cannot read the replication id')
          }),
        down: () => {
          const wasUp = partition.branch !== null
          partition.branch = null
          if (wasUp) events.down(partition)
        },
        message: (topic, message) => dispatch(topic, message, prefixLength, events),
        misplaced: (_line, reason) => {
          if (this.#reported) return
          this.#reported = true
          const text = 'redis is a cluster node: use the address redis+cluster://'
          log.error({ redis: name, reason }, text)
        },
      },
      log,
    )
    partition.connection = this.#connection
    this.partitions = [partition]
  }

  get up() {
    return this.partitions[0].up
  }

  connect() {
    this.#connection.connect()
  }

  close() {
    this.#connection.close()
  }
}

/** A master of a cluster that owns, or may own, a partition. */
export class ClusterNode {
  /** When a view last listed it as owner of a partition (ms). */
  lastSeenAt = 0
  /** @type {Set<Partition>} no longer owned, but may still deliver messages */
  unsubscribing = new Set()
  /** @type {Set<Partition>} waiting for its last replies */
  leaving = new Set()
  ok = false
  /** Whether it has refused an owned slot since its last view. */
  refusedSlot = false
  #shard
  #asking = false
  #again = false

  /** @param {ClusterServer} server @param {RedisOptions} options @param {ClusterShard} shard @param {Logger} log */
  constructor({ id, host, port }, options, shard, log) {
    this.id = id
    this.host = host
    this.port = port
    this.#shard = shard
    this.connection = new Connection(
      `${host}:${port}`,
      { ...options, host, port },
      {
        up: () => this.ask(),
        down: () => this.#lost(),
        message: (topic, message) => shard.message(this, topic, message),
        misplaced: (_line, reason) => {
          // The slot is moving: wait.
          if (/^(ASK|TRYAGAIN) /.test(reason)) return
          if (reason.startsWith('CLUSTERDOWN ')) return shard.askSoon()
          shard.refused(this, Number(reason.match(/^MOVED (\d+) /)?.[1] ?? -1))
        },
      },
      log,
    )
    this.connection.connect()
  }

  #lost() {
    this.ok = false
    this.refusedSlot = false
    this.unsubscribing.clear()
    this.#shard.lost(this)
  }

  /** Requests its view: only its own view determines its slots. */
  ask() {
    this.#again = this.#asking
    if (this.#asking || !this.connection.up) return
    this.#asking = true
    const { connection } = this
    const send = connection.send.bind(connection)
    askView(send, this.host, (error, view) => {
      this.#asking = false
      if (!error && connection.up) {
        this.ok = view.ok
        this.#shard.answered(this, view)
      }
      if (this.#again) this.ask()
    })
  }
}

/**
 * A Redis Cluster. Its partitions are hash slots. A partition belongs to the master that claims the slot; views of
 * other servers only select the masters to query, so outdated views are harmless.
 *
 *          a master claims it            it no longer does, or the cluster is down and another master claims it
 *   (none) -----------------> connected ---------------------------------------------------------> leaving
 *      ^                          | connection lost                                                   |
 *      +--------------------------+----------------------------------- pending commands completed ----+
 * @implements {Shard}
 */
export class ClusterShard {
  #options
  #events
  #log
  /** @type {number[]} */
  #slots
  /** @type {(ClusterNode | null)[]} current or last master of each partition */
  #owners
  /** @type {Set<Partition>} waiting for the last replies of their former master */
  #leaving = new Set()
  /** @type {Map<string, ClusterNode>} */
  #nodes = new Map()
  #seeds
  /** @type {HostPort[]} known servers of the cluster */
  #servers
  #nextServer = 0
  /** @type {Set<() => void>} */
  #queries = new Set()
  #queryError = ''
  /** Whether a query has completed; before, the reason of an outage is unknown. */
  #queried = false
  /** @type {NodeJS.Timeout | undefined} */
  #timer
  #dueAt = 0
  #askedAt = 0
  #waits = 0
  /** Start (ms) of the current outage of a partition, 0 = none. */
  #lostAt = 0
  #reported = false
  /** Master of the last connection lost in this outage. @type {ClusterNode | null} */
  #lostNode = null
  #closed = false
  #prefixLength
  #digitsAt
  #digits

  /**
   * @param {Target} target @param {string} prefix @param {number} partitionCount
   * @param {ShardEvents} events @param {Logger} log
   */
  constructor({ name, options, nodes = [] }, prefix, partitionCount, events, log) {
    this.name = name
    this.#options = options
    this.#seeds = nodes
    this.#servers = nodes
    this.#events = events
    this.#log = log
    this.#digits = String(partitionCount - 1).length
    this.#digitsAt = Buffer.byteLength(`${prefix}.{`)
    this.#prefixLength = this.#digitsAt + this.#digits + '}.'.length
    const tags = Array.from({ length: partitionCount }, (_, i) => String(i).padStart(this.#digits, '0'))
    this.partitions = tags.map(tag => new Partition(`${prefix}.{${tag}}.`, false))
    this.#slots = tags.map(slotOf)
    this.#owners = new Array(partitionCount).fill(null)
  }

  get up() {
    return this.#owners.every((owner, i) => owner?.ok && this.partitions[i].up)
  }

  connect() {
    this.#lostAt = Date.now()
    this.#ask()
  }

  close() {
    this.#closed = true
    clearTimeout(this.#timer)
    for (const stop of this.#queries) stop()
    for (const { connection } of this.#nodes.values()) connection.close()
  }

  #ask() {
    this.#askedAt = Date.now()
    this.#report()
    this.#forget()
    for (const node of this.#nodes.values()) node.ask()
    if (![...this.#nodes.values()].some(({ ok }) => ok)) this.#queryServers()
    const wait = this.up ? PERIOD : Math.min(MAX_WAIT, FIRST_WAIT * 2 ** Math.min(this.#waits++, 10))
    this.#schedule(wait * (0.75 + Math.random() / 2))
  }

  /** @param {number} wait ms */
  #schedule(wait) {
    clearTimeout(this.#timer)
    this.#dueAt = Date.now() + wait
    this.#timer = setTimeout(() => this.#ask(), wait)
  }

  askSoon() {
    if (this.#closed) return
    this.#waits = 0
    const wait = Math.max(0, this.#askedAt + FIRST_WAIT - Date.now())
    if (Date.now() + wait < this.#dueAt) this.#schedule(wait)
  }

  #queryServers() {
    // Configured addresses stay valid when all others have changed.
    const servers = [...this.#servers, ...this.#seeds]
    for (let i = Math.min(MAX_QUERIES, servers.length); i > 0 && this.#queries.size < MAX_QUERIES; i--) {
      const server = servers[this.#nextServer++ % servers.length]
      const stop = queryServer(server, this.#options, (error, view) => {
        this.#queries.delete(stop)
        this.#queried = true
        if (error) this.#queryError = `${server.host}:${server.port}: ${error.message}`
        else if (view) this.#applyView(view)
      })
      this.#queries.add(stop)
    }
  }

  /** Updates the servers and masters from a view. @param {ClusterView} view */
  #applyView({ ranges, servers }) {
    if (servers.length > 0) this.#servers = servers
    for (const { first, last, master } of ranges) {
      if (master.port > 0 && this.#slots.some(slot => first <= slot && slot <= last)) this.#addMaster(master)
    }
  }

  /** @param {ClusterServer} server */
  #addMaster(server) {
    let node = this.#nodes.get(server.id)
    if (node && !node.connection.up && (node.host !== server.host || node.port !== server.port)) {
      this.#drop(node)
      node = undefined
    }
    if (!node) {
      node = new ClusterNode(server, this.#options, this, this.#log)
      this.#nodes.set(server.id, node)
    }
    node.lastSeenAt = Date.now()
  }

  #forget() {
    for (const node of this.#nodes.values())
      if (Date.now() - node.lastSeenAt > FORGET && !this.#owners.includes(node)) this.#drop(node)
  }

  /** @param {ClusterNode} node */
  #drop(node) {
    this.lost(node)
    this.#nodes.delete(node.id)
    this.#owners = this.#owners.map(owner => (owner === node ? null : owner))
    node.connection.close()
  }

  /** A node does not own the slot. @param {ClusterNode} node @param {number} slot -1 = unknown */
  refused(node, slot) {
    const concerns = this.#owners.some((owner, i) => owner === node && (slot === this.#slots[i] || slot < 0))
    // A leaving partition's pending commands are refused.
    if (concerns && (slot >= 0 || node.leaving.size === 0)) node.refusedSlot = true
    this.askSoon()
  }

  /** @param {ClusterNode} node @param {ClusterView} view of the node */
  answered(node, view) {
    if (this.#closed) return
    this.#applyView(view)
    let left = false
    for (const [i, slot] of this.#slots.entries()) {
      const claimed = view.ranges.some(
        ({ first, last, master }) => first <= slot && slot <= last && master.id === node.id,
      )
      if (claimed && view.ok) this.#claim(i, node, view.sharded)
      else if (!claimed && this.#owners[i] === node) {
        left = true
        this.#leave(i, node)
      }
    }
    // The node refused a slot it now claims again: the state of its subscriptions is unknown.
    if (node.refusedSlot && !left) node.connection.reset('the node rejected a slot that it owns')
    node.refusedSlot = false
    this.#report()
  }

  /** @param {number} i @param {ClusterNode} node @param {boolean} sharded */
  #claim(i, node, sharded) {
    const partition = this.partitions[i]
    const owner = this.#owners[i]
    // A partitioned master may not know yet that it was replaced.
    if (partition.connection !== null && owner !== null && owner !== node && !owner.ok) this.#leave(i, owner)
    if (partition.connection !== null || this.#leaving.has(partition) || node.unsubscribing.has(partition))
      return
    this.#owners[i] = node
    partition.sharded = sharded
    partition.connection = node.connection
    partition.join(error => {
      if (!error) {
        this.#events.up(partition)
        this.#report()
      } else if (node.connection.up) this.#release(partition)
    })
  }

  /** Its connection is lost or refuses it. @param {Partition} partition */
  #release(partition) {
    const wasUp = partition.branch !== null
    partition.connection = null
    partition.branch = null
    this.#lostAt ||= Date.now()
    if (wasUp) this.#events.down(partition)
    this.askSoon()
  }

  /** @param {number} i @param {ClusterNode} node former master */
  #leave(i, node) {
    const partition = this.partitions[i]
    this.#owners[i] = null
    this.#lostAt ||= Date.now()
    if (partition.connection === null) return
    const wasUp = partition.branch !== null
    partition.connection = null
    partition.branch = null
    this.#leaving.add(partition)
    node.leaving.add(partition)
    this.#clean(partition, node)
    node.connection.send('ping', [], () => {
      this.#leaving.delete(partition)
      node.leaving.delete(partition)
      if (this.#closed) return
      if (wasUp) this.#events.down(partition)
      this.askSoon()
    })
  }

  /**
   * When a slot moves, Redis ends only sharded subscriptions; plain ones still get publications on all servers.
   * @param {Partition} partition @param {ClusterNode} node
   */
  #clean(partition, node) {
    const { connection } = node
    node.unsubscribing.add(partition)
    const cleaned = () => {
      node.unsubscribing.delete(partition)
      this.askSoon()
    }
    const { sharded } = partition
    const pattern = `${partition.prefix.replace(/[*?[\]\\]/g, '\\$&')}*`
    // May include other subscribers' topics: harmless.
    connection.send('pubsub', [sharded ? 'shardchannels' : 'channels', pattern], (error, topics) => {
      if (error || topics.length === 0) return cleaned()
      connection.send(sharded ? 'sunsubscribe' : 'unsubscribe', topics, cleaned)
    })
  }

  /** The connection of a node is lost. @param {ClusterNode} node */
  lost(node) {
    for (const [i, partition] of this.partitions.entries()) {
      if (this.#owners[i] !== node || partition.connection === null) continue
      this.#lostNode = node
      this.#release(partition)
    }
    this.askSoon()
  }

  /** @param {ClusterNode} node @param {Buffer} topic @param {Buffer} message */
  message(node, topic, message) {
    let i = 0
    for (let at = this.#digitsAt; at < this.#digitsAt + this.#digits; at++) i = 10 * i + topic[at] - ZERO
    if (this.partitions[i]?.connection === node.connection)
      dispatch(topic, message, this.#prefixLength, this.#events)
  }

  #report() {
    if (this.#lostAt === 0) return
    const outage_ms = Date.now() - this.#lostAt
    if (this.up) {
      // After a shorter outage, the log may contain only the lost connection of a replaced master.
      const replaced = this.#lostNode !== null && !this.#lostNode.connection.up
      if (this.#reported || replaced)
        this.#log.info({ redis: this.name, outage_ms }, 'the redis cluster is fully reachable again')
      this.#lostAt = 0
      this.#reported = false
      this.#lostNode = null
    } else if (!this.#reported && this.#queried && outage_ms >= REPORT_AFTER) {
      this.#reported = true
      const { length } = this.partitions
      const missing = this.partitions.filter(({ up }) => !up).length
      const fields = { redis: this.name, partitions: `${missing} of ${length}` }
      const reason = missing === length ? { reason: this.#queryError } : {}
      this.#log.warn({ ...fields, ...reason }, 'the redis cluster is partly unreachable')
    }
  }
}

/** @param {string} name @returns {number} 32 bits (FNV-1a over UTF-16 units) */
export function hash(name) {
  let h = 0x811c9dc5
  for (let i = 0; i < name.length; i++) h = Math.imul(h ^ name.charCodeAt(i), 0x01000193)
  return h >>> 0
}

/** Mixes a hash with a number (the finalizer of MurmurHash3). @param {number} h @param {number} seed */
function mix(h, seed) {
  h ^= Math.imul(seed + 1, 0x9e3779b1)
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return (h ^ (h >>> 16)) >>> 0
}

/**
 * Shard of a hash by rendezvous hashing: the highest score wins. An added shard moves only the channels it receives.
 * @param {number} h @param {number} count of shards
 */
export function shardOf(h, count) {
  let best = 0
  let highest = -1
  for (let i = 0; i < count; i++) {
    const score = mix(h, i)
    if (score > highest) {
      highest = score
      best = i
    }
  }
  return best
}

/** Maps channels to partitions. Equal on all nodes with the same addresses in the same order. */
export class Placement {
  /** @type {Shard[]} */
  #shards

  /**
   * @param {Target[]} targets @param {{prefix: string, partitions: number}} options `partitions` of each cluster
   * @param {ShardEvents} events @param {Logger} log
   */
  constructor(targets, { prefix, partitions }, events, log) {
    this.#shards = targets.map(target =>
      target.kind === 'cluster'
        ? new ClusterShard(target, prefix, partitions, events, log)
        : new SingleShard(target, prefix, events, log),
    )
  }

  /** @returns {Partition} for other data */
  get control() {
    return this.#shards[0].partitions[0]
  }

  get partitions() {
    return this.#shards.flatMap(({ partitions }) => partitions)
  }

  /** @param {string} channel @returns {Partition} */
  of(channel) {
    const shards = this.#shards
    if (shards.length === 1 && shards[0].partitions.length === 1) return shards[0].partitions[0]
    const h = hash(channel)
    const { partitions } = shards.length === 1 ? shards[0] : shards[shardOf(h, shards.length)]
    return partitions[mix(h, 0x5eed) % partitions.length]
  }

  get up() {
    return this.#shards.every(({ up }) => up)
  }

  /** Call about once a second: detects lost idle servers and new replication ids on the same connection. */
  probe() {
    const probed = new Set()
    for (const partition of this.partitions) {
      const { connection } = partition
      if (!partition.up || probed.has(connection)) continue
      probed.add(connection)
      partition.join((_error, changed) => {
        if (!changed) return
        for (const other of this.partitions)
          if (other !== partition && other.up && other.connection === connection) other.join(() => {})
      })
    }
  }

  connect() {
    for (const shard of this.#shards) shard.connect()
  }

  close() {
    for (const shard of this.#shards) shard.close()
  }
}
