// The Redis of a measurement: its figures, and the end of the gateways' connections.

import { Cluster, Redis } from 'ioredis'
import { parseTargets } from '../src/channels/broker/redis/address.js'
import { loadConfig } from '../src/config/load.js'

/**
 * @param {string} text reply of INFO, of several servers one after another @param {string} name of a field
 * @returns {number} sum of the field over all servers
 */
const sumOf = (text, name) =>
  [...text.matchAll(new RegExp(`^${name}:([\\d.]+)`, 'gm'))].reduce(
    (sum, [, value]) => sum + Number(value),
    0,
  )

/** @param {import('../src/channels/broker/redis/address.js').Target} target @returns {Redis | Cluster} */
function connectionTo({ options, nodes }) {
  const redisOptions = {
    ...options,
    // This connection must not be among those that `killGatewayConnections` ends.
    connectionName: undefined,
    disableClientInfo: true,
    // It is idle between two samples.
    socketTimeout: undefined,
    // An address without a Redis is an error at once.
    maxRetriesPerRequest: 1,
  }
  return nodes === undefined
    ? new Redis(redisOptions)
    : new Cluster(nodes, { redisOptions, clusterRetryStrategy: () => null })
}

/** The Redis that the gateways of a run share. Figures are sums over all masters. */
export class SharedRedis {
  #clientName
  /** @type {(Redis | Cluster)[]} */
  #connections
  #lastError = ''

  /**
   * @param {string[]} addresses of a running Redis @param {string} clientName of the gateways' connections
   * @returns {Promise<SharedRedis>} when it answers
   * @throws {Error} when it does not
   */
  static async open(addresses, clientName) {
    const redis = new SharedRedis(addresses, clientName)
    try {
      await redis.cpu()
      return redis
    } catch (error) {
      redis.stop()
      throw new Error(`redis does not answer: ${redis.#lastError || error.message}`)
    }
  }

  /** @param {string[]} addresses @param {string} clientName */
  constructor(addresses, clientName) {
    this.#clientName = clientName
    const { config } = loadConfig({ base: { engine: { type: 'redis', redis: { address: addresses } } } })
    this.#connections = parseTargets(config.engine.redis).map(connectionTo)
    for (const connection of this.#connections) {
      connection.on('error', ({ message }) => {
        this.#lastError = message
      })
    }
  }

  /** @returns {Promise<Redis[]>} */
  async #masters() {
    const mastersOfEach = this.#connections.map(async connection => {
      if (connection instanceof Redis) return [connection]
      // A cluster connection knows its nodes after the first reply.
      await connection.ping()
      return connection.nodes('master')
    })
    return (await Promise.all(mastersOfEach)).flat()
  }

  /** @param {string} section of INFO @returns {Promise<string>} replies of all masters, one after another */
  async #info(section) {
    const masters = await this.#masters()
    return (await Promise.all(masters.map(master => master.info(section)))).join('\n')
  }

  /** @returns {Promise<number>} seconds of processor time used, user and system */
  async cpu() {
    const text = await this.#info('cpu')
    return sumOf(text, 'used_cpu_user') + sumOf(text, 'used_cpu_sys')
  }

  /** @returns {Promise<number>} bytes allocated */
  async memory() {
    return sumOf(await this.#info('memory'), 'used_memory')
  }

  /** @returns {Promise<number>} channels with subscribers, control channels of the gateways included */
  async channels() {
    const text = await this.#info('stats')
    return sumOf(text, 'pubsub_channels') + sumOf(text, 'pubsubshard_channels')
  }

  /** Ends the connections of the gateways, and no others. */
  async killGatewayConnections() {
    for (const master of await this.#masters()) {
      const lines = String(await master.client('LIST')).split('\n')
      const gateways = lines.filter(line => line.includes(` name=${this.#clientName} `))
      await Promise.all(
        gateways.map(line => master.client('KILL', 'ID', /** @type {any} */ (line.match(/^id=(\d+)/))[1])),
      )
    }
  }

  /** Disconnects. */
  stop() {
    for (const connection of this.#connections) connection.disconnect()
  }
}
