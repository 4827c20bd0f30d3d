// The servers of a run: one gateway, several and their Redis, or a control.

import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { isControl, startControl } from '../targets/index.js'
import { GatewayProcess } from './gateway-process.js'
import { cpuOf } from './proc.js'
import { RedisProcess } from './processes.js'
import { RunError } from './target.js'

/** @import { RunPlan } from '../scenarios/contract.js' */
/** @import { ServerProcess } from './processes.js' */

/** ms between readings of memory, and their number; the minimum counts, since it has the least garbage. */
const READ_INTERVAL = 500
const READINGS = 6

export class Servers {
  #options
  /** @type {ServerProcess[]} */
  #servers = []
  /** @type {RedisProcess | null} */
  redis = null
  /** CPU time of processes of the scenario (s). @type {Record<string, () => number>} */
  #cpuParts = {}
  /** Stop processes of the scenario. @type {(() => unknown)[]} */
  #ends = []
  /** Bytes of user space before the first connection; null: not measured. @type {number | null} */
  base = null

  /**
   * @param {{plan: RunPlan, out: string, server: string, redisAddresses: string[], progress: (text: string) => void}}
   *   options `redisAddresses`: of a running Redis
   */
  constructor(options) {
    this.#options = options
  }

  /** @returns {Promise<void>} when all are ready @throws {RunError} the caller must call `stop` */
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
    const extra = await plan.setup?.({ folder: out, teardown: end => void this.#ends.push(end) })
    this.#cpuParts = extra?.cpu ?? {}
    /** @type {Record<string, any>} */
    const config = { ...plan.gateway.config }
    for (const [block, value] of Object.entries(extra?.config ?? {}))
      config[block] = Array.isArray(value) ? value : { ...config[block], ...value }
    const gateway = { ...plan.gateway, config }
    progress('starting the gateway')
    const address = this.redis?.address ?? redisAddresses
    for (let node = 1; node <= nodes; node++)
      this.#servers.push(
        await GatewayProcess.start({
          plan: gateway,
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

  get apiKey() {
    return this.#servers[0].apiKey
  }

  get text() {
    const { plan, server } = this.#options
    const { workers } = plan.gateway
    if (isControl(server)) return `${server} on ${this.urls[0]}`
    return `gateway on ${this.urls.join(', ')}, ${workers} ${workers === 1 ? 'worker' : 'workers'}`
  }

  /** @returns {number} CPU time of all processes, without Redis, s */
  cpu() {
    return this.#servers.reduce((sum, server) => sum + server.cpu(), 0)
  }

  /** @returns {Record<string, number>} s by part: `cpu` of all servers, its parts, `redis`, and other processes */
  cpuParts() {
    /** @type {Record<string, number>} */
    const parts = { cpu: this.cpu() }
    for (const server of this.#servers)
      for (const [part, cpu] of Object.entries(server.cpuParts())) parts[part] = (parts[part] ?? 0) + cpu
    if (this.redis !== null) parts.redis = cpuOf(this.redis.pid)
    for (const [part, cpu] of Object.entries(this.#cpuParts)) parts[part] = cpu()
    return parts
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

  /** @returns {Promise<never>} rejects when a server exits unexpectedly */
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
    throw new RunError(`${name} exited (${signal ?? `exit status ${code}`})${words ? `: ${words}` : ''}`)
  }

  async stop() {
    await Promise.all(this.#servers.map(server => server.stop()))
    await this.redis?.stop()
    for (const end of this.#ends.reverse()) await end()
    await rm(join(this.#options.out, 'redis'), { recursive: true, force: true })
  }
}

/** Persistence required by the disturbances. @param {RunPlan} plan @returns {'always' | 'everysec' | 'none'} */
function persistenceOf({ steps }) {
  const kinds = steps.flatMap(({ disturbances = [] }) => disturbances.map(({ kind }) => kind))
  if (kinds.includes('kill-redis')) return 'always'
  return kinds.includes('stop-redis') ? 'everysec' : 'none'
}
