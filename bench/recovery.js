// Hundreds of clients recover megabytes each at once, while publishers use another channel: latency of the publishes,
// memory, and correctness of the recoveries.

import { fork } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { processTree, rssOf } from '../fleet/runner/proc.js'
import { rounded, roundedMs } from '../fleet/runner/table.js'
import { parseFlags, UsageError } from './flags.js'
import { messageFrom } from './messages.js'
import { checkCapacity, post, printResult, ServerRun } from './servers.js'

/** @typedef {import('./servers.js').Gateway} Server */
/** @typedef {import('./recovery-clients.js').Totals} Totals */

const RECOVERED_CHANNEL = 'history'
const OTHER_CHANNEL = 'elsewhere'
/** Each publisher waits for the answer, then PUBLISH_PAUSE_MS, and publishes again. */
const PUBLISHERS = 4
const PUBLISH_PAUSE_MS = 5
const MEMORY_INTERVAL_MS = 50
const MIB = 2 ** 20

const DEFAULTS = { clients: 400, publications: 300, size: 20_000, queue: 16 * MIB, workers: 2 }

export const HELP = `Usage: npm run bench -- recovery [flags]

All clients connect, and then recover the publications of one channel at once, while publishers use another channel.
A client must get either all publications in order, or \`recovered: false\`. Exit status 1: a client got something else
or was disconnected, or a worker died.

  --clients N         clients (default ${DEFAULTS.clients})
  --publications N    publications that each client has missed (default ${DEFAULTS.publications})
  --size BYTES        payload of each publication (default ${DEFAULTS.size})
  --queue BYTES       client.queue_max_size: a larger recovery is refused (default ${DEFAULTS.queue})
  --workers N         workers of the gateway (default ${DEFAULTS.workers})
  --engine ENGINE     memory or redis (default memory)
  --driver DRIVER     auto, uws or node (default auto)
  --json              a line of JSON instead of a table
  -h, --help          this text
`

/** @typedef {typeof DEFAULTS & {engine: 'memory' | 'redis', driver: string, json: boolean}} RecoveryOptions */

/** @param {string[]} args @returns {RecoveryOptions | null} null: help was requested @throws {UsageError} */
export function parseOptions(args) {
  const options = parseFlags(args, DEFAULTS, { engine: 'memory', driver: 'auto' })
  if (options === null) return null
  const { engine, clients, workers } = options
  if (engine !== 'memory' && engine !== 'redis')
    throw new UsageError(`--engine is memory or redis, not "${engine}"`)
  checkCapacity(clients, workers)
  return /** @type {RecoveryOptions} */ (options)
}

/** @extends {ServerRun<RecoveryOptions>} */
export class Run extends ServerRun {
  /** @returns {Promise<boolean>} whether all replies were right and no worker died */
  async run() {
    const { json, engine, queue, clients, publications } = this.options
    const { progress } = this.io
    try {
      progress('recovery: starting')
      const server = await this.#start()
      const workers = processTree(server.pid).slice(1)
      const epoch = await this.#fill(server)
      const clientProcess = await this.#connect(server, epoch)
      const idle = memoryOf(server.pid)
      progress('recovery: all clients recover')
      const figures = await this.#measure(server, clientProcess)
      const alive = new Set(processTree(server.pid))
      const dead_workers = workers.filter(pid => !alive.has(pid)).length
      const result = { clients, publications, ...figures, dead_workers, ...prefixed('idle', idle) }
      printResult(this.io, json, { scenario: 'recovery', engine, queue }, 'halley', result)
      return dead_workers === 0 && result.incomplete === 0 && result.closed === 0
    } finally {
      progress('')
      await this.stop()
    }
  }

  async #start() {
    const { publications, queue, workers, engine, driver } = this.options
    const redis = engine === 'redis' ? { address: await this.startRedis() } : undefined
    const without_namespace = { history_size: publications + 1, history_ttl: '600s', force_recovery: true }
    return await this.spawn({
      workers,
      driver,
      redis,
      history: publications,
      config: {
        client: { queue_max_size: queue, ping_interval: '10m' },
        channel: { without_namespace, namespaces: [] },
      },
    })
  }

  /**
   * Publishes one publication that the clients have, and then those that they have missed.
   * @param {Server} server @returns {Promise<string>} epoch of the channel
   */
  async #fill(server) {
    const { publications, size } = this.options
    const body = JSON.stringify({ channel: RECOVERED_CHANNEL, data: { text: 'x'.repeat(size) } })
    for (let i = 0; i <= publications; i++)
      if (!(await post(server.api, 'publish', body))) throw new Error('a publish was refused')
    const { url, key } = server.api
    const answer = await fetch(`${url}/api/history`, {
      method: 'POST',
      headers: { 'X-API-Key': key },
      body: JSON.stringify({ channel: RECOVERED_CHANNEL, limit: 0 }),
    })
    const { result } = /** @type {any} */ (await answer.json())
    return result.epoch
  }

  /**
   * @param {Server} server @param {string} epoch
   * @returns {Promise<import('node:child_process').ChildProcess>} process of the clients, when all are connected
   */
  async #connect({ url }, epoch) {
    const { clients, publications } = this.options
    /** @type {import('./recovery-clients.js').RecoveryClientsOptions} */
    const options = { url, clients, channel: RECOVERED_CHANNEL, epoch, since: 1, publications }
    const clientProcess = fork(new URL('./recovery-clients.js', import.meta.url), [JSON.stringify(options)])
    this.ends.push(() => void clientProcess.kill('SIGKILL'))
    await messageFrom(clientProcess, 'connected')
    return clientProcess
  }

  /** @param {Server} server @param {import('node:child_process').ChildProcess} clientProcess */
  async #measure(server, clientProcess) {
    const body = JSON.stringify({ channel: OTHER_CHANNEL, data: {} })
    /** @type {number[]} */
    const latencies = []
    let failed = 0
    let publishing = true
    const peak = memoryOf(server.pid)
    const publish = async () => {
      while (publishing) {
        const start = performance.now()
        if (!(await post(server.api, 'publish', body).catch(() => false))) failed++
        latencies.push(performance.now() - start)
        await sleep(PUBLISH_PAUSE_MS)
      }
    }
    const sample = setInterval(() => {
      const now = memoryOf(server.pid)
      peak.primary_mib = Math.max(peak.primary_mib, now.primary_mib)
      peak.worker_mib = Math.max(peak.worker_mib, now.worker_mib)
    }, MEMORY_INTERVAL_MS)
    const start = performance.now()
    clientProcess.send('recover')
    const publishers = Array.from({ length: PUBLISHERS }, publish)
    try {
      const message = await messageFrom(clientProcess, 'totals')
      publishing = false
      const seconds = rounded((performance.now() - start) / 1000, 2)
      await Promise.all(publishers)
      latencies.sort((a, b) => a - b)
      const percentile = (/** @type {number} */ share) =>
        roundedMs(latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))])
      const { bytes, ...outcomes } = /** @type {Totals} */ (message.totals)
      return {
        ...outcomes,
        reply_mib: rounded(bytes / MIB, 1),
        seconds,
        publishes: latencies.length,
        publishes_failed: failed,
        publish_p50_ms: percentile(0.5),
        publish_p99_ms: percentile(0.99),
        publish_max_ms: percentile(1),
        ...prefixed('max', peak),
      }
    } finally {
      publishing = false
      clearInterval(sample)
    }
  }
}

/** @param {number} pid of the primary @returns resident memory of the primary, and of its largest worker */
function memoryOf(pid) {
  const [primary, ...workers] = processTree(pid).map(process => rounded(rssOf(process) / MIB, 1))
  return { primary_mib: primary, worker_mib: Math.max(...workers, 0) }
}

/** @param {string} prefix of each name @param {Record<string, number>} figures */
const prefixed = (prefix, figures) =>
  Object.fromEntries(Object.entries(figures).map(([name, value]) => [`${prefix}_${name}`, value]))
