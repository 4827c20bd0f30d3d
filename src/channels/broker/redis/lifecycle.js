// What the lifecycle log keeps in Redis, for the primary of a node: the stream, the journals of nodes, their leases.
// All its keys are in one partition, so commands are executed in the order in which they were sent.

import { parseTargets } from './address.js'
import { replyTo } from './partition.js'
import { Placement } from './placement.js'
import { lifecycleAppend, lifecycleBeat, lifecycleChange, lifecycleLeave, lifecycleTake } from './scripts.js'

/** @import { RedisOptions } from '../../../config/options.js' */
/** @import { Logger } from 'pino' */
/** @import { Partition } from './partition.js' */
/** @import { Script } from './scripts.js' */

/** Time for which the number of a node's last batch is kept, ms. */
const BATCH_TTL_MS = 24 * 3600 * 1000
/** An idle connection is checked so often, ms. */
const PROBE_MS = 1000

/** @typedef {Map<string, string>} JournalChange client -> what is known of it as JSON, '' if it has gone */

/**
 * @typedef {object} StoreParts
 * @property {RedisOptions} redis of the form of `engine.redis`
 * @property {string} node id
 * @property {(up: boolean) => void} onChange whether Redis is within reach
 * @property {Logger} log
 */

/** All methods reject if Redis is away or refuses the command. */
export class LifecycleStore {
  /** @type {Placement} */
  #placement
  /** @type {Partition} */
  #partition
  #node
  #probe

  /** @param {StoreParts} parts */
  constructor({ redis, node, onChange, log }) {
    this.#placement = new Placement(
      parseTargets(redis),
      { prefix: redis.prefix, partitions: redis.sharded_pub_sub_partitions },
      {
        up: partition => partition === this.#partition && onChange(true),
        down: partition => partition === this.#partition && onChange(false),
        channelMessage() {},
        controlMessage() {},
      },
      log,
    )
    this.#partition = this.#placement.control
    this.#node = node
    this.#probe = setInterval(() => this.#placement.probe(), PROBE_MS)
  }

  connect() {
    this.#placement.connect()
  }

  get up() {
    return this.#partition.up
  }

  /** Key of the stream. */
  get stream() {
    return this.#partition.key('lifecycle', 'stream')
  }

  /**
   * @param {Script} script @param {string[]} names of keys @param {(string | number)[]} args @returns {Promise<any>}
   */
  #run(script, names, args) {
    const keys = names.map(name => this.#partition.key('lifecycle', name))
    return replyTo(done => this.#partition.run(script, keys, args, done))
  }

  /**
   * Appends a batch to the stream, once however often it is sent.
   * @param {number} batch number of the batch, from 1 @param {string[]} records @param {number} maxLength 0: none
   */
  append(batch, records, maxLength) {
    return this.#run(
      lifecycleAppend,
      ['stream', `batch.${this.#node}`],
      [batch, BATCH_TTL_MS, maxLength, ...records],
    )
  }

  /** @param {JournalChange} changes some hundreds */
  change(changes) {
    return this.#run(lifecycleChange, [`journal.${this.#node}`], [...changes].flat())
  }

  /** Removes clients from the journal of a dead node. @param {string} dead @param {string[]} clients */
  forget(dead, clients) {
    return this.#run(
      lifecycleChange,
      [`journal.${dead}`],
      clients.flatMap(client => [client, '']),
    )
  }

  /**
   * @param {number} lease ms
   * @returns {Promise<{alive: boolean, dead: string[]}>} `alive`: the lease had not expired; `dead`: ids of nodes
   */
  async beat(lease) {
    const [alive, ...dead] = (await this.#run(lifecycleBeat, ['nodes'], [this.#node, lease])).map(String)
    return { alive: alive === '1', dead }
  }

  /**
   * @param {string} dead id of a node @param {number} time for which this node takes, ms @param {number} count
   * @param {string} cursor of the last call, '0' at first
   * @returns {Promise<{clients: [client: string, known: string][], cursor: string} | null>} about `count` clients of its
   *   journal; none: no more; null: it lives, or another node takes it over
   */
  async take(dead, time, count, cursor) {
    const names = ['nodes', `journal.${dead}`, `taker.${dead}`]
    const reply = await this.#run(lifecycleTake, names, [dead, this.#node, time, count, cursor])
    if (reply === null) return null
    const [next, ...pairs] = reply.map(String)
    /** @type {[string, string][]} */
    const clients = []
    for (let i = 0; i < pairs.length; i += 2) clients.push([pairs[i], pairs[i + 1]])
    return { clients, cursor: next }
  }

  /** This node has ended and left no client. */
  leave() {
    return this.#run(lifecycleLeave, ['nodes', `journal.${this.#node}`], [this.#node])
  }

  close() {
    clearInterval(this.#probe)
    this.#placement.close()
  }
}
