// Many clients recover much at once, while others publish: the delay of a publish to another channel, and the replies
// to the recovering clients.

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { startRedis } from '../test/redis/servers.js'
import { parseFlags, UsageError } from './flags.js'
import { processTree, rssOf } from './proc.js'
import { printResult, rounded, roundedMs } from './report.js'
import { post, ServerRun } from './servers.js'

/** @typedef {import('./servers.js').Server} Server */
/** @typedef {import('./recovery-clients.js').Totals} Totals */

const CHANNEL = 'history'
const ELSEWHERE = 'elsewhere'
/** Publishers of the other channel: each waits for its answer, then PAUSE_MS. */
const PUBLISHERS = 4
const PAUSE_MS = 5
const SAMPLE_MS = 50
const MIB = 2 ** 20

const DEFAULTS = { clients: 400, publications: 300, size: 20_000, queue: 16 * MIB, workers: 2 }

export const HELP = `Usage: npm run bench -- recovery [flags]

Clients connect, and then all of them ask at once for all publications of one channel, while others publish to another
channel. Ends with 1 if a client gets something else than all publications in order or a refusal, or if a worker dies.

  --clients N         (default ${DEFAULTS.clients})
  --publications N    that each client has missed (default ${DEFAULTS.publications})
  --size BYTES        of each (default ${DEFAULTS.size})
  --queue BYTES       client.queue_max_size: a larger recovery is refused (default ${DEFAULTS.queue})
  --workers N         of the gateway (default ${DEFAULTS.workers})
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
  const { engine } = options
  if (engine !== 'memory' && engine !== 'redis')
    throw new UsageError(`--engine is memory or redis, not "${engine}"`)
  return /** @type {RecoveryOptions} */ (options)
}

/** @extends {ServerRun<RecoveryOptions>} */
export class Run extends ServerRun {
  /** @returns {Promise<boolean>} whether every client was answered correctly and every worker lives */
  async run() {
    const { json, engine, queue, clients, publications } = this.options
    const { progress } = this.io
    try {
      progress('recovery: starting')
      const server = await this.#start()
      const workers = processTree(server.pid).slice(1)
      const epoch = await this.#fill(server)
      const load = await this.#connect(server, epoch)
      const before = this.#memory(server.pid)
      progress('recovery: all at once')
      const figures = await this.#measure(server, load)
      const alive = new Set(processTree(server.pid))
      const dead_workers = workers.filter(pid => !alive.has(pid)).length
      const result = { clients, publications, ...figures, dead_workers, ...prefixed('idle', before) }
      printResult(this.io, json, { scenario: 'recovery', engine, queue }, 'halley', result)
      return dead_workers === 0 && result.incomplete === 0 && result.closed === 0
    } finally {
      progress('')
      await this.stop()
    }
  }

  async #start() {
    const { publications, queue, workers, engine, driver } = this.options
    let redis = null
    if (engine === 'redis') {
      const own = await startRedis({ teardown: (/** @type {() => void} */ end) => this.ends.push(end) })
      redis = { address: own.address }
    }
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

  /** Publishes what the clients will miss, after one publication that they have. @param {Server} server */
  async #fill(server) {
    const { publications, size } = this.options
    const body = JSON.stringify({ channel: CHANNEL, data: { text: 'x'.repeat(size) } })
    for (let i = 0; i <= publications; i++)
      if (!(await post(server.api, 'publish', body))) throw new Error('a publish was refused')
    const { url, key } = server.api
    const answer = await fetch(`${url}/api/history`, {
      method: 'POST',
      headers: { 'X-API-Key': key },
      body: JSON.stringify({ channel: CHANNEL, limit: 0 }),
    })
    const { result } = /** @type {any} */ (await answer.json())
    return result.epoch
  }

  /** @param {Server} server @param {string} epoch */
  async #connect({ url }, epoch) {
    const { clients, publications } = this.options
    const orders = { url, clients, channel: CHANNEL, epoch, since: 1, publications }
    const load = fork(new URL('./recovery-clients.js', import.meta.url), [JSON.stringify(orders)])
    this.ends.push(() => void load.kill('SIGKILL'))
    await once(load, 'message')
    return load
  }

  /** @param {Server} server @param {import('node:child_process').ChildProcess} load */
  async #measure(server, load) {
    const body = JSON.stringify({ channel: ELSEWHERE, data: {} })
    /** @type {number[]} */
    const waits = []
    let failed = 0
    /** @type {Totals | null} */
    let totals = null
    const most = this.#memory(server.pid)
    const publish = async () => {
      while (totals === null) {
        const start = performance.now()
        if (!(await post(server.api, 'publish', body).catch(() => false))) failed++
        waits.push(performance.now() - start)
        await sleep(PAUSE_MS)
      }
    }
    const sample = setInterval(() => {
      const now = this.#memory(server.pid)
      most.primary_mib = Math.max(most.primary_mib, now.primary_mib)
      most.worker_mib = Math.max(most.worker_mib, now.worker_mib)
    }, SAMPLE_MS)
    const start = performance.now()
    load.send('recover')
    const publishing = Array.from({ length: PUBLISHERS }, publish)
    try {
      const [message] = await once(load, 'message')
      totals = /** @type {Totals} */ (message.totals)
      const seconds = rounded((performance.now() - start) / 1000, 2)
      await Promise.all(publishing)
      waits.sort((a, b) => a - b)
      const percentile = (/** @type {number} */ share) =>
        roundedMs(waits[Math.min(waits.length - 1, Math.floor(waits.length * share))])
      const { bytes, ...outcomes } = totals
      return {
        ...outcomes,
        reply_mib: rounded(bytes / MIB, 1),
        seconds,
        publishes: waits.length,
        publishes_failed: failed,
        publish_p50_ms: percentile(0.5),
        publish_p99_ms: percentile(0.99),
        publish_max_ms: percentile(1),
        ...prefixed('max', most),
      }
    } finally {
      clearInterval(sample)
    }
  }

  /** Resident memory of the primary and of its largest worker. @param {number} pid */
  #memory(pid) {
    const [primary, ...workers] = processTree(pid).map(process => rounded(rssOf(process) / MIB, 1))
    return { primary_mib: primary, worker_mib: Math.max(...workers, 0) }
  }
}

/** @param {string} prefix @param {Record<string, number>} figures */
const prefixed = (prefix, figures) =>
  Object.fromEntries(Object.entries(figures).map(([name, value]) => [`${prefix}_${name}`, value]))
