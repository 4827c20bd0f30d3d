// The servers of a run: one gateway, several and their Redis, or a control.

import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { isControl, startControl } from '../targets/index.js'
import { GatewayProcess } from './gateway-process.js'
import { cpuOf } from './proc.js'
import { RedisProcess } from './processes.js'
import { RunError } from './target.js'

/** @typedef {import('./processes.js').ServerProcess} ServerProcess */

/** ms between two readings of memory, and their number; the least counts, because garbage waits for its collection. */
const READ_INTERVAL = 500
const READINGS = 6

export class Servers {
  #options
  /** @type {ServerProcess[]} */
  #servers = []
  /** @type {RedisProcess | null} */
  redis = null
  /** Bytes of user space before the first connection; null: not measured. @type {number | null} */
  base = null

  /**
   * @param {object} options @param {import('../scenarios/contract.js').RunPlan} options.plan
   * @param {string} options.out folder @param {string} options.server
   * @param {string[]} options.redisAddresses of a running Redis @param {(text: string) => void} options.progress
   */
  constructor(options) {
    this.#options = options
  }

  /** @returns {Promise<void>} when all answer @throws {RunError} the caller still has to call `stop` */
  async start() {
    const { plan, out, server, redisAddresses, progress } = this.#options
    const { workers, nodes = 1, redis } = plan.gateway
    if (isControl(server)) {
      progress(`starting ${server}`)
      this.#servers.push(await startControl(server, { out, workers }))
      return
    }
    if (redis && redisAddresses.length === 0) {
      progress('starting Redis')
      this.redis = new RedisProcess(join(out, 'redis'), persistenceOf(plan))
      await this.redis.start()
    }
    progress('starting the gateway')
    const address = this.redis?.address ?? redisAddresses
    for (let node = 1; node <= nodes; node++)
      this.#servers.push(
        await GatewayProcess.start({
          plan: plan.gateway,
          out,
          name: node === 1 ? 'gateway' : `gateway-${node}`,
          redis: redis ? { address } : undefined,
        }),
      )
  }

  /** @returns {GatewayProcess[]} */
  get gateways() {
    return this.#servers.filter(server => server instanceof GatewayProcess)
  }

  get urls() {
    return this.#servers.map(({ url }) => url)
  }

  /** All have the same. */
  get apiKey() {
    return this.#servers[0].apiKey
  }

  /** For the log. */
  get text() {
    const { plan, server } = this.#options
    const { workers } = plan.gateway
    if (isControl(server)) return `${server} on ${this.urls[0]}`
    return `gateway on ${this.urls.join(', ')}, ${workers} ${workers === 1 ? 'worker' : 'workers'}`
  }

  /** @returns {number} s of processor time of all its processes, without Redis */
  cpu() {
    return this.#servers.reduce((sum, server) => sum + server.cpu(), 0)
  }

  /** @returns {number | null} s of processor time of Redis; null: the run has not started one */
  redisCpu() {
    return this.redis === null ? null : cpuOf(this.redis.pid)
  }

  /** @returns {number} bytes of user space of all processes, without Redis */
  memory() {
    return this.#servers.reduce((sum, server) => sum + server.memory(), 0)
  }

  async measureBase() {
    this.base = this.memory()
    for (let reading = 1; reading < READINGS; reading++) {
      await sleep(READ_INTERVAL)
      this.base = Math.min(this.base, this.memory())
    }
  }

  /** @returns {Promise<never>} rejects when one of them ends unexpectedly */
  async lost() {
    const { server } = this.#options
    const { code, signal, words } = await Promise.race(
      this.#servers.map(async each => {
        if (!(each instanceof GatewayProcess)) return { ...(await each.process.ended), words: '' }
        const how = await each.lost
        return { ...how, words: await each.lastWarning() }
      }),
    )
    const name = isControl(server) ? server : 'the gateway'
    throw new RunError(`${name} ended (${signal ?? `exit status ${code}`})${words ? `: ${words}` : ''}`)
  }

  async stop() {
    await Promise.all(this.#servers.map(server => server.stop()))
    await this.redis?.stop()
    await rm(join(this.#options.out, 'redis'), { recursive: true, force: true })
  }
}

/** @param {import('../scenarios/contract.js').RunPlan} plan @returns {'always' | 'everysec' | 'none'} what it needs */
function persistenceOf({ steps }) {
  const kinds = steps.flatMap(({ disturbances = [] }) => disturbances.map(({ kind }) => kind))
  if (kinds.includes('kill-redis')) return 'always'
  return kinds.includes('stop-redis') ? 'everysec' : 'none'
}
