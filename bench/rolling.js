// One gateway under load while its workers are replaced one after another, or all of it. Clients and publishers count
// faults.

import { fork } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import http from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseFlags, UsageError } from './flags.js'
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
/** Interval of publishing, ms. */
const PUBLISH_TICK = 10
/** ms for a whole rolling restart, and for the last publications to arrive. */
const PATIENCE = 300_000
/** Publications of each channel kept for recovery. */
const HISTORY_SIZE = 1_000

export const HELP = `Usage: npm run bench -- rolling [flags]

One gateway; clients on recoverable channels and publishers over the server API, while a rolling restart replaces all
workers. Ends with 1 if a connect or a publish is refused, or a publication is missing or repeated. With --by restart
there is a gap in which nobody serves: connects and publishes refused then are counted, and no fault.

  --by WHAT         signal: SIGUSR2; reload: SIGHUP with a key that takes new workers; restart: SIGTERM, a snapshot and a
                    new start (default signal)

  --clients N       WebSockets, one channel each (default ${DEFAULTS.clients})
  --channels N      that they share (default ${DEFAULTS.channels})
  --rate N          publications a second over all channels (default ${DEFAULTS.rate})
  --workers N       (default ${DEFAULTS.workers})
  --loaders N       processes with clients (default ${DEFAULTS.loaders})
  --connections N   of the publisher, kept alive (default ${DEFAULTS.connections})
  --before MS       of publishing before and after the restart (default ${DEFAULTS.before})
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

/** Publishes at a steady rate over kept connections. */
class Publisher {
  acks = 0
  /** @type {Record<string, number>} fault -> publishes without an acknowledgement */
  faults = {}
  slowest = 0
  /** Longest time without an acknowledgement, ms. */
  gap = 0
  #ackedAt = performance.now()
  /** @type {Map<string, number>} channel -> highest acknowledged offset */
  tops = new Map()
  #api
  #agent
  #channels
  #underWay = new Set()
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
    }, PUBLISH_TICK)
  }

  /** @param {string} channel */
  async #publish(channel) {
    const begun = performance.now()
    const request = this.#post(channel)
    this.#underWay.add(request)
    try {
      const { result } = await request
      const now = performance.now()
      this.acks++
      this.slowest = Math.max(this.slowest, now - begun)
      this.gap = Math.max(this.gap, now - this.#ackedAt)
      this.#ackedAt = now
      this.tops.set(channel, Math.max(this.tops.get(channel) ?? 0, result.offset))
    } catch (error) {
      this.faults[error.code ?? error.message] = (this.faults[error.code ?? error.message] ?? 0) + 1
    }
    this.#underWay.delete(request)
  }

  /** @param {string} channel @returns {Promise<any>} */
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
    await Promise.allSettled(this.#underWay)
    this.#agent.destroy()
  }
}

/** @param {import('node:child_process').ChildProcess} loader @param {string} type @returns {Promise<any>} */
const messageOf = (loader, type) =>
  new Promise((resolve, reject) => {
    loader.on('message', (/** @type {any} */ message) => message.type === type && resolve(message))
    loader.once('exit', code => reject(new Error(`a process with clients ended with ${code}`)))
  })

/** @extends {ServerRun<RollingOptions>} */
export class Run extends ServerRun {
  /** @returns {Promise<boolean>} whether nothing was refused, missing or repeated */
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
    const loaders = await this.#load(server.url)
    const publisher = new Publisher(server.api, this.options)
    await sleep(before)
    progress(`rolling: ${by === 'restart' ? 'SIGTERM and a new start' : 'rolling restart'}`)
    const begun = performance.now()
    const ended = await this.#replace(server, log)
    const seconds = (performance.now() - begun) / 1000
    await sleep(before)
    await publisher.stop()
    progress('rolling: waiting for the last publications')
    const behind = await this.#settle(loaders, publisher.tops)
    const results = await Promise.all(
      loaders.map(loader => {
        loader.send({ type: 'stop' })
        return messageOf(loader, 'result')
      }),
    )
    progress('')
    const sum = (/** @type {string} */ name) => results.reduce((all, { totals }) => all + totals[name], 0)
    const gaps = results.flatMap(result => result.gaps).sort((a, b) => a - b)
    const perSecond = merged(results.map(result => result.perSecond))
    const faults = Object.values(publisher.faults).reduce((all, count) => all + count, 0)
    const result = {
      clients,
      channels,
      restart_s: Number(seconds.toFixed(1)),
      publishes: publisher.acks,
      publishes_failed: faults,
      slowest_publish_ms: Math.round(publisher.slowest),
      longest_gap_ms: Math.round(publisher.gap),
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
      if (faults > 0) print(`failed publishes: ${JSON.stringify(publisher.faults)}\n`)
    }
    const wrong = ['missing', 'repeated', 'unrecovered']
    if (by !== 'restart') wrong.push('publishes_failed', 'connects_refused')
    return ended && wrong.every(name => /** @type {any} */ (result)[name] === 0)
  }

  /** @param {Server} server @param {string} log @returns {Promise<boolean>} whether all workers are new */
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
    return this.#line(log, 'rolling restart ended')
  }

  /** @param {string} url */
  async #load(url) {
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
        return messageOf(loader, 'ready')
      }),
    )
    return loaders
  }

  /** @param {string} file of the gateway @param {string} text @returns {Promise<boolean>} */
  async #line(file, text) {
    for (const patience = Date.now() + PATIENCE; Date.now() < patience; await sleep(100)) {
      const log = readFileSync(file, 'utf8')
      if (log.includes('ended early')) return false
      if (log.includes(`"${text}"`)) return true
    }
    return false
  }

  /** @param {import('node:child_process').ChildProcess[]} loaders @param {Map<string, number>} tops */
  async #settle(loaders, tops) {
    let behind = 0
    for (const patience = Date.now() + PATIENCE / 10; Date.now() < patience; await sleep(500)) {
      behind = 0
      for (const loader of loaders) {
        loader.send({ type: 'offsets' })
        const { offsets } = await messageOf(loader, 'offsets')
        for (const [channel, offset] of offsets) behind += Math.max(0, (tops.get(channel) ?? 0) - offset)
      }
      if (behind === 0) break
    }
    return behind
  }
}

/** @param {Record<string, number>[]} all @returns {Record<string, number>} */
function merged(all) {
  /** @type {Record<string, number>} */
  const sum = {}
  for (const counts of all) for (const key of Object.keys(counts)) sum[key] = (sum[key] ?? 0) + counts[key]
  return sum
}
