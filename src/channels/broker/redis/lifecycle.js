// Lifecycle log in Redis: the stream, the journals and leases of nodes. One partition keeps commands in order.

import { parseTargets } from './address.js'
import { replyTo } from './partition.js'
import { Placement } from './placement.js'
import * as scripts from './scripts.js'

/** @import { RedisOptions } from '../../../config/options.js' */
/** @import { Logger } from 'pino' */
/** @import { Partition } from './partition.js' */
/** @import { Script } from './scripts.js' */

/** Expiry of the number of a node's last batch, ms. */
const BATCH_TTL_MS = 24 * 3600 * 1000
const PROBE_MS = 1000

/** @typedef {Map<string, string>} JournalChange client -> its data as JSON, '' if disconnected */

/**
 * @typedef {{redis: RedisOptions, node: string, onChange: (up: boolean) => void, log: Logger}} StoreParts
 */

/** All methods reject if Redis is unreachable or refuses the command. */
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

  get stream() {
    return this.#partition.key('lifecycle', 'stream')
  }

  /** @param {Script} script @param {string[]} names of keys @param {(string | number)[]} args @returns {Promise<any>} */
  #run(script, names, args) {
    const keys = names.map(name => this.#partition.key('lifecycle', name))
    return replyTo(done => this.#partition.run(script, keys, args, done))
  }

  /** Idempotent. @param {number} batch from 1 @param {string[]} records @param {number} maxLength 0: none */
  append(batch, records, maxLength) {
    const args = [batch, BATCH_TTL_MS, maxLength, ...records]
    return this.#run(scripts.lifecycleAppend, ['stream', `batch.${this.#node}`], args)
  }

  /** @param {JournalChange} changes some hundreds */
  change(changes) {
    return this.#run(scripts.lifecycleChange, [`journal.${this.#node}`], [...changes].flat())
  }

  /** Removes clients from the journal of a dead node. @param {string} dead @param {string[]} clients */
  forget(dead, clients) {
    const gone = clients.flatMap(client => [client, ''])
    return this.#run(scripts.lifecycleChange, [`journal.${dead}`], gone)
  }

  /**
   * @param {number} lease ms
   * @returns {Promise<{alive: boolean, dead: string[]}>} `alive`: the lease had not expired; `dead`: ids of nodes
   */
  async beat(lease) {
    const [alive, ...dead] = (await this.#run(scripts.lifecycleBeat, ['nodes'], [this.#node, lease])).map(
      String,
    )
    return { alive: alive === '1', dead }
  }

  /**
   * @param {string} dead id of a node @param {number} time lease of the takeover, ms @param {number} count
   * @param {string} cursor of the last call, initially '0'
   * @returns {Promise<{clients: [client: string, known: string][], cursor: string} | null>} about `count` clients of its
   *   journal; none: end; null: it is alive, or another node takes it over
   */
  async take(dead, time, count, cursor) {
    const names = ['nodes', `journal.${dead}`, `taker.${dead}`]
    const reply = await this.#run(scripts.lifecycleTake, names, [dead, this.#node, time, count, cursor])
    if (reply === null) return null
    const [next, ...pairs] = reply.map(String)
    /** @type {[string, string][]} */
    const clients = []
    for (let i = 0; i < pairs.length; i += 2) clients.push([pairs[i], pairs[i + 1]])
    return { clients, cursor: next }
  }

  leave() {
    return this.#run(scripts.lifecycleLeave, ['nodes', `journal.${this.#node}`], [this.#node])
  }

  close() {
    clearInterval(this.#probe)
    this.#placement.close()
  }
}
