import { ClusterShard } from './cluster-shard.js'
import { Connection } from './connection.js'
import { dispatch, Partition } from './partition.js'

/**
 * @typedef {object} ShardEvents
 * @property {(partition: Partition) => void} up its connection, maybe a new one, can be used and has no subscriptions
 * @property {(partition: Partition) => void} down pending commands have failed, subscriptions have ended
 * @property {(channel: string, message: Buffer) => void} channelMessage valid only during the call
 * @property {(topic: string, message: Buffer) => void} controlMessage message on another topic, without the prefix
 *
 * @typedef {object} Shard one deployment of Redis: a server, a sentinel set or a cluster
 * @property {string} name for the log
 * @property {Partition[]} partitions
 * @property {boolean} up whether all of it is within reach
 * @property {() => void} connect
 * @property {() => void} close
 */

/** One Redis server, or the master of a sentinel set. @implements {Shard} */
export class SingleShard {
  #connection
  #reported = false

  /**
   * @param {import('./address.js').Target} target @param {string} prefix @param {ShardEvents} events
   * @param {import('pino').Logger} log
   */
  constructor({ name, options }, prefix, events, log) {
    this.name = name
    const partition = new Partition(`${prefix}.`, false)
    const prefixLength = Buffer.byteLength(partition.prefix)
    this.#connection = new Connection(
      name,
      options,
      {
        up: () => this.#join(partition, events),
        down: () => {
          const wasUp = partition.branch !== null
          partition.branch = null
          if (wasUp) events.down(partition)
        },
        message: (topic, message) => dispatch(topic, message, prefixLength, events),
        misplaced: (_line, reason) => {
          if (this.#reported) return
          this.#reported = true
          log.error(
            { redis: name, reason },
            'this redis is a node of a cluster: use the address redis+cluster://',
          )
        },
      },
      log,
    )
    partition.connection = this.#connection
    this.partitions = [partition]
  }

  /** @param {Partition} partition @param {ShardEvents} events */
  #join(partition, events) {
    partition.join(error => {
      if (!error) events.up(partition)
      else if (this.#connection.up) this.#connection.reset('cannot read the replication id')
    })
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

/** Place of each channel. Equal on all nodes with the same list of addresses in the same order. */
export class Placement {
  /** @type {Shard[]} */
  #shards

  /**
   * @param {import('./address.js').Target[]} targets
   * @param {{prefix: string, partitions: number}} options `partitions` of each cluster
   * @param {ShardEvents} events @param {import('pino').Logger} log
   */
  constructor(targets, { prefix, partitions }, events, log) {
    this.#shards = targets.map(target =>
      target.kind === 'cluster'
        ? new ClusterShard(target, prefix, partitions, events, log)
        : new SingleShard(target, prefix, events, log),
    )
  }

  /** @returns {Partition} for data of no channel */
  get control() {
    return this.#shards[0].partitions[0]
  }

  /** @returns {Partition[]} */
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

  /**
   * Called about once a second: detects that an idle server is gone, and that a server has a new replication id although
   * its connection stays.
   */
  probe() {
    const asked = new Set()
    for (const partition of this.partitions) {
      const { connection } = partition
      if (!partition.up || asked.has(connection)) continue
      asked.add(connection)
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
