// One gateway under load while its workers are replaced one after another, or while it is restarted as a whole. Clients
// and publishers count faults.

import { fork } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import http from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseFlags, UsageError } from './flags.js'
import { messageFrom } from './messages.js'
import { printResult } from './report.js'
import { checkCapacity, ServerRun } from './servers.js'

const DEFAULTS = {
  clients: 20_000,
  rate: 1_000,
  channels: 4_000,
  workers: 2,
  loaders: 4,
  connections: 16,
  before: 5_000,
}
const PUBLISH_INTERVAL_MS = 10
/** For a rolling restart to end. */
const RESTART_TIMEOUT_MS = 300_000
/** For the last publications to arrive. */
const SETTLE_TIMEOUT_MS = 30_000
/** Publications of each channel kept for recovery. */
const HISTORY_SIZE = 1_000

export const HELP = `Usage: npm run bench -- rolling [flags]

Clients subscribe to recoverable channels of one gateway, a publisher uses its server API, and all workers are replaced.
Exit status 1: a connect or a publish was refused, or a publication was missing or repeated. With --by restart the
gateway is away for a moment: refused connects and publishes are counted, but do not change the exit status.

  --by WHAT         signal: SIGUSR2; reload: SIGHUP after changing an option that needs new workers; restart: SIGTERM,
                    then a new start from the snapshot (default signal)

  --clients N       WebSockets, one channel each (default ${DEFAULTS.clients})
  --channels N      channels, shared by the clients (default ${DEFAULTS.channels})
  --rate N          publications a second over all channels (default ${DEFAULTS.rate})
  --workers N       workers of the gateway (default ${DEFAULTS.workers})
  --loaders N       processes with clients (default ${DEFAULTS.loaders})
  --connections N   kept-alive connections of the publisher (default ${DEFAULTS.connections})
  --before MS       time of publishing before the restart, and again after it (default ${DEFAULTS.before})
  --driver NAME     uws, node or auto (default auto)
  --json            a line of JSON instead of a table
  -h, --help        this text
`

/** @typedef {import('./servers.js').Server} Server */
/** @typedef {typeof DEFAULTS & {by: 'signal' | 'reload' | 'restart', driver: string, json: boolean}} RollingOptions */

/** @param {string[]} args @returns {RollingOptions | null} null: help was requested */
export function parseOptions(args) {
  const options = /** @type {RollingOptions | null} */ (
    parseFlags(args, DEFAULTS, { by: 'signal', driver: 'auto' })
  )
  if (options === null) return null
  if (!['signal', 'reload', 'restart'].includes(options.by))
    throw new UsageError(`--by is signal, reload or restart, not "${options.by}"`)
  checkCapacity(options.clients, options.workers)
  return options
}

/** Publishes at a steady rate over kept-alive connections. */
class Publisher {
  acknowledged = 0
  /** Error -> publishes that failed with it. @type {Record<string, number>} */
  failures = {}
  /** Longest time from a publish to its acknowledgement, ms. */
  slowestMs = 0
  /** Longest time between two acknowledgements, ms. */
  gapMs = 0
  #acknowledgedAt = performance.now()
  /** Channel -> highest acknowledged offset. @type {Map<string, number>} */
  topOffsets = new Map()
  #api
  #agent
  #channels
  /** @type {Set<Promise<any>>} */
  #inFlight = new Set()
  #sent = 0
  #timer

  /** @param {import('./servers.js').Api} api @param {RollingOptions} options */
  constructor(api, { rate, channels, connections }) {
    this.#api = api
    this.#channels = channels
    this.#agent = new http.Agent({ keepAlive: true, maxSockets: connections })
    const begun = performance.now()
    this.#timer = setInterval(() => {
      const due = ((performance.now() - begun) * rate) / 1000
      while (this.#sent < due) this.#publish(`c${this.#sent++ % this.#channels}`)
    }, PUBLISH_INTERVAL_MS)
  }

  /** @param {string} channel */
  async #publish(channel) {
    const begun = performance.now()
    const request = this.#post(channel)
    this.#inFlight.add(request)
    try {
      const { result } = await request
      const now = performance.now()
      this.acknowledged++
      this.slowestMs = Math.max(this.slowestMs, now - begun)
      this.gapMs = Math.max(this.gapMs, now - this.#acknowledgedAt)
      this.#acknowledgedAt = now
      this.topOffsets.set(channel, Math.max(this.topOffsets.get(channel) ?? 0, result.offset))
    } catch (error) {
      const reason = error.code ?? error.message
      this.failures[reason] = (this.failures[reason] ?? 0) + 1
    }
    this.#inFlight.delete(request)
  }

  /** @param {string} channel @returns {Promise<any>} reply; rejects without one, and for another status than 200 */
  #post(channel) {
    return new Promise((resolve, reject) => {
      const options = { method: 'POST', agent: this.#agent, headers: { 'X-API-Key': this.#api.key } }
      const request = http.request(`${this.#api.url}/api/publish`, options, async answer => {
        try {
          let text = ''
          for await (const chunk of answer) text += chunk
          if (answer.statusCode !== 200) reject(new Error(`HTTP ${answer.statusCode}`))
          else resolve(JSON.parse(text))
        } catch (error) {
          reject(error)
        }
      })
      request.on('error', reject)
      request.end(JSON.stringify({ channel, data: { at: Date.now() } }))
    })
  }

  async stop() {
    clearInterval(this.#timer)
    await Promise.allSettled(this.#inFlight)
    this.#agent.destroy()
  }
}

/** @extends {ServerRun<RollingOptions>} */
export class Run extends ServerRun {
  /** @returns {Promise<boolean>} whether all workers were replaced without a fault */
  async run() {
    const { clients, channels, workers, by, driver, before, json } = this.options
    const { progress } = this.io
    const folder = await mkdtemp(join(tmpdir(), 'halley-bench-log-'))
    this.ends.push(() => rm(folder, { recursive: true, force: true }))
    const log = join(folder, 'log')
    const config = {
      log: { level: 'info', file: log },
      stats: { socket: 'none' },
      engine: { memory: { snapshot_file: by === 'restart' ? join(folder, 'snapshot') : '' } },
    }
    const server = await this.spawn({ workers, driver, history: HISTORY_SIZE, config })
    progress(`rolling: ${clients.toLocaleString('en')} clients connect`)
    const loaders = await this.#startLoaders(server.url)
    const publisher = new Publisher(server.api, this.options)
    await sleep(before)
    progress(`rolling: ${by === 'restart' ? 'SIGTERM and a new start' : 'rolling restart'}`)
    const begun = performance.now()
    const replaced = await this.#replace(server, log)
    const seconds = (performance.now() - begun) / 1000
    await sleep(before)
    await publisher.stop()
    progress('rolling: waiting for the last publications')
    const behind = await this.#settle(loaders, publisher.topOffsets)
    const results = await Promise.all(
      loaders.map(loader => {
        loader.send({ type: 'stop' })
        return messageFrom(loader, 'result')
      }),
    )
    progress('')
    const sum = (/** @type {string} */ name) => results.reduce((all, { totals }) => all + totals[name], 0)
    const gaps = results.flatMap(result => result.gaps).sort((a, b) => a - b)
    const perSecond = merged(results.map(result => result.perSecond))
    const failures = Object.values(publisher.failures).reduce((all, count) => all + count, 0)
    const result = {
      clients,
      channels,
      restart_s: Number(seconds.toFixed(1)),
      publishes: publisher.acknowledged,
      publishes_failed: failures,
      slowest_publish_ms: Math.round(publisher.slowestMs),
      longest_gap_ms: Math.round(publisher.gapMs),
      deliveries: sum('received'),
      reconnects: gaps.length,
      connects_refused: sum('refused'),
      reconnects_per_s_max: Math.max(0, ...Object.values(perSecond)),
      reconnect_p50_ms: Math.round(gaps[gaps.length >> 1] ?? 0),
      reconnect_p99_ms: Math.round(gaps[Math.floor(gaps.length * 0.99)] ?? 0),
      reconnect_max_ms: Math.round(gaps.at(-1) ?? 0),
      missing: sum('missing') + behind,
      repeated: sum('repeated'),
      unrecovered: sum('unrecovered'),
    }
    printResult(this.io, json, { scenario: 'rolling', by, driver }, `by ${by}`, result)
    const { print } = this.io
    if (!json) {
      print(`closes: ${JSON.stringify(merged(results.map(({ closes }) => closes)))}\n`)
      print(`reconnects each second: ${Object.values(perSecond).join(' ')}\n`)
      if (result.connects_refused > 0)
        print(`refused connects: ${JSON.stringify(merged(results.map(({ refusals }) => refusals)))}\n`)
      if (failures > 0) print(`failed publishes: ${JSON.stringify(publisher.failures)}\n`)
    }
    const faults = ['missing', 'repeated', 'unrecovered']
    if (by !== 'restart') faults.push('publishes_failed', 'connects_refused')
    return replaced && faults.every(name => /** @type {any} */ (result)[name] === 0)
  }

  /** @param {Server} server @param {string} log path @returns {Promise<boolean>} whether all workers are new */
  async #replace(server, log) {
    const { by } = this.options
    if (by === 'restart') {
      await server.restart()
      return true
    }
    if (by === 'reload') {
      const config = JSON.parse(await readFile(server.configFile, 'utf8'))
      await writeFile(server.configFile, JSON.stringify({ ...config, sse: { enabled: true } }))
    }
    process.kill(server.pid, by === 'reload' ? 'SIGHUP' : 'SIGUSR2')
    return await rollingRestartEnds(log)
  }

  /**
   * @param {string} url of the gateway
   * @returns {Promise<import('node:child_process').ChildProcess[]>} processes of the clients, when all are connected
   */
  async #startLoaders(url) {
    const { clients, channels, loaders: count } = this.options
    const loaders = Array.from({ length: count }, () =>
      fork(fileURLToPath(new URL('rolling-clients.js', import.meta.url))),
    )
    this.ends.push(() => {
      for (const loader of loaders) loader.kill('SIGKILL')
    })
    await Promise.all(
      loaders.map((loader, i) => {
        const first = Math.floor((clients * i) / count)
        const last = Math.floor((clients * (i + 1)) / count)
        loader.send({
          type: 'start',
          url: `${url.replace('http', 'ws')}/connection/websocket`,
          channels,
          first,
          count: last - first,
        })
        return messageFrom(loader, 'ready')
      }),
    )
    return loaders
  }

  /**
   * Waits until the clients have all acknowledged publications.
   * @param {import('node:child_process').ChildProcess[]} loaders @param {Map<string, number>} topOffsets by channel
   * @returns {Promise<number>} publications that have not arrived, of all clients
   */
  async #settle(loaders, topOffsets) {
    let behind = 0
    for (const deadline = Date.now() + SETTLE_TIMEOUT_MS; Date.now() < deadline; await sleep(500)) {
      behind = 0
      for (const loader of loaders) {
        loader.send({ type: 'offsets' })
        const { offsets } = await messageFrom(loader, 'offsets')
        for (const [channel, offset] of offsets)
          behind += Math.max(0, (topOffsets.get(channel) ?? 0) - offset)
      }
      if (behind === 0) break
    }
    return behind
  }
}

/** @param {string} log path of the gateway's log @returns {Promise<boolean>} false: it ended early, or took too long */
async function rollingRestartEnds(log) {
  for (const deadline = Date.now() + RESTART_TIMEOUT_MS; Date.now() < deadline; await sleep(100)) {
    const text = readFileSync(log, 'utf8')
    if (text.includes('rolling restart ended early')) return false
    if (text.includes('"rolling restart ended"')) return true
  }
  return false
}

/** @param {Record<string, number>[]} all @returns {Record<string, number>} sum for each key */
function merged(all) {
  /** @type {Record<string, number>} */
  const sum = {}
  for (const counts of all) for (const key of Object.keys(counts)) sum[key] = (sum[key] ?? 0) + counts[key]
  return sum
}
