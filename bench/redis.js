// The Redis of a run: its figures, and the loss of the gateways' connections.

import { Cluster, Redis } from 'ioredis'
import { parseTargets } from '../src/broker/redis/address.js'
import { loadConfig } from '../src/config/load.js'
import { startRedis } from '../test/redis/servers.js'

/** Name of the gateways' connections in CLIENT LIST. */
const CLIENT_NAME = 'halley-bench'

/**
 * @param {string} text lines `name:value` @param {string} name may occur several times
 * @returns {number} sum of its values
 */
const sumOf = (text, name) =>
  [...text.matchAll(new RegExp(`^${name}:([\\d.]+)`, 'gm'))].reduce(
    (sum, [, value]) => sum + Number(value),
    0,
  )

/** @param {import('../src/broker/redis/address.js').Target} target @returns {Redis | Cluster} */
function connectionTo({ options, nodes }) {
  // The gateways' options without their name, by which `cut` finds their connections.
  const own = {
    ...options,
    connectionName: undefined,
    socketTimeout: undefined,
    disableClientInfo: true,
    maxRetriesPerRequest: 1,
  }
  return nodes === undefined
    ? new Redis(own)
    : new Cluster(nodes, { redisOptions: own, clusterRetryStrategy: () => null })
}

/** The Redis of a run's gateways. Its figures are sums over all masters. */
export class SharedRedis {
  #addresses
  /** @type {(Redis | Cluster)[]} */
  #connections
  #cleanups
  #lastError = ''

  /**
   * @param {string[]} addresses of an existing one; none: start one without persistence
   * @returns {Promise<SharedRedis>} when it answers
   */
  static async open(addresses) {
    /** @type {(() => Promise<void>)[]} */
    const cleanups = []
    const teardown = (/** @type {() => Promise<void>} */ cleanup) => cleanups.push(cleanup)
    const redis = new SharedRedis(
      addresses.length > 0 ? addresses : [(await startRedis({ teardown })).address],
      cleanups,
    )
    try {
      await redis.cpu()
      return redis
    } catch (error) {
      await redis.stop()
      throw new Error(`redis does not answer: ${redis.#lastError || error.message}`)
    }
  }

  /** @param {string[]} addresses @param {(() => Promise<void>)[]} cleanups called by `stop` */
  constructor(addresses, cleanups) {
    this.#addresses = addresses
    this.#cleanups = cleanups
    const { config } = loadConfig({ base: { engine: { type: 'redis', redis: { address: addresses } } } })
    this.#connections = parseTargets(config.engine.redis).map(connectionTo)
    for (const connection of this.#connections) {
      connection.on('error', ({ message }) => {
        this.#lastError = message
      })
    }
  }

  /** Value of `engine.redis` for a gateway. */
  get config() {
    return { address: this.#addresses, client_name: CLIENT_NAME }
  }

  /** @returns {Promise<Redis[]>} */
  async #masters() {
    const masters = this.#connections.map(async connection => {
      if (connection instanceof Redis) return [connection]
      // ioredis knows the nodes after the first reply.
      await connection.ping()
      return connection.nodes('master')
    })
    return (await Promise.all(masters)).flat()
  }

  /** @param {string} section @returns {Promise<string>} of all masters */
  async #info(section) {
    const masters = await this.#masters()
    return (await Promise.all(masters.map(master => master.info(section)))).join('\n')
  }

  /** @returns {Promise<number>} seconds of processor time used, user and system */
  async cpu() {
    const text = await this.#info('cpu')
    return sumOf(text, 'used_cpu_user') + sumOf(text, 'used_cpu_sys')
  }

  /** @returns {Promise<number>} allocated bytes */
  async memory() {
    return sumOf(await this.#info('memory'), 'used_memory')
  }

  /** @returns {Promise<number>} channels with subscribers, control channels of the gateways included */
  async channels() {
    const text = await this.#info('stats')
    return sumOf(text, 'pubsub_channels') + sumOf(text, 'pubsubshard_channels')
  }

  /** Ends the connections of this run's gateways, and no others. */
  async cut() {
    for (const master of await this.#masters()) {
      const list = String(await master.client('LIST'))
      const ids = list.split('\n').filter(line => line.includes(` name=${CLIENT_NAME} `))
      await Promise.all(
        ids.map(line => master.client('KILL', 'ID', /** @type {any} */ (line.match(/^id=(\d+)/))[1])),
      )
    }
  }

  async stop() {
    for (const connection of this.#connections) connection.disconnect()
    for (const cleanup of this.#cleanups) await cleanup()
  }
}
