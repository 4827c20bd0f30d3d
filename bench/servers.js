// Gateways of the measurements, and what starts and ends them.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { local } from '../fleet/providers/local.js'
import { GatewayProcess } from '../fleet/runner/gateway-process.js'
import { RedisProcess } from '../fleet/runner/processes.js'
import { runScenario } from '../fleet/runner/run.js'
import { medians, table } from '../fleet/runner/table.js'
import { capacityOf } from '../fleet/targets/index.js'
import { UsageError } from './flags.js'
import { Watcher } from './watcher.js'

/**
 * @typedef {GatewayProcess} Gateway
 * @typedef {GatewayProcess['api']} Api where to publish
 * @typedef {object} Io
 * @property {(text: string) => void} print to standard output
 * @property {(text: string) => void} progress a line that replaces the last one; '' clears it
 * @property {(text: string) => void} warning a line that stays
 * @typedef {object} GatewayOptions
 * @property {number} workers
 * @property {string} [driver] default auto
 * @property {object} [redis] `engine.redis`; none: the embedded engine
 * @property {number} [history] publications of each channel kept for recovery; default 0
 * @property {number} [subscriptions] minimum limit of a client; default 1
 * @property {string[]} [flags] of Node.js, instead of those of `npm start`
 * @property {Record<string, any>} [config] blocks that extend or override those of a measurement
 */

/** Halley's defaults. */
const CHANNEL_LIMIT = 128
const RECOVERY_LIMIT = 300

/** @param {number} conns clients @param {number} workers @throws {UsageError} too many for this machine */
export function checkCapacity(conns, workers) {
  if (conns > capacityOf('halley', workers))
    throw new UsageError(`the limit of open files leaves ${workers} workers no room for ${conns} clients`)
}

/**
 * @param {Omit<GatewayOptions, 'workers' | 'redis' | 'flags'>} options
 * @returns {Record<string, any>} a configuration with everything that a measurement may need
 */
function configOf({ driver = 'auto', history = 0, subscriptions = 1, config: more = {} }) {
  return {
    uni_poll: { enabled: true },
    uni_sse: { enabled: true },
    uni_http_stream: { enabled: true },
    channel: {
      ...(history > 0 && {
        without_namespace: { history_size: history, history_ttl: '60s', force_recovery: true },
      }),
      namespaces: [{ name: 'kept', history_size: 10, history_ttl: '60s' }],
    },
    log: { level: 'error' },
    ...more,
    http_server: { driver, ...more.http_server },
    client: {
      insecure: true,
      allowed_origins: ['*'],
      channel_limit: Math.max(CHANNEL_LIMIT, subscriptions),
      recovery_max_publication_limit: Math.max(RECOVERY_LIMIT, history),
      ...more.client,
    },
  }
}

/** A program against servers of its own. @template O its options */
export class ServerRun {
  /** Each ends something that was started. @type {(() => unknown)[]} */
  ends = []

  /** @param {O} options @param {Io} io */
  constructor(options, io) {
    this.options = options
    this.io = io
  }

  /**
   * @param {GatewayOptions} options
   * @param {(server: Gateway) => Promise<boolean>} [isReady] whether its workers answer; default: `/health` does
   * @returns {Promise<Gateway>} that answers
   */
  async spawn({ workers, redis, flags, ...options }, isReady) {
    const plan = { workers, nodeFlags: flags, config: configOf(options) }
    const server = await GatewayProcess.start({ plan, out: await this.folder(), redis, isReady })
    this.ends.push(() => server.stop())
    return server
  }

  /** @param {GatewayOptions} options @returns {Promise<{server: Gateway, watcher: Watcher}>} as `spawn` */
  async spawnWatched(options) {
    const server = await this.spawn(options)
    const watcher = new Watcher(server.socket)
    this.ends.push(() => watcher.end())
    return { server, watcher }
  }

  /**
   * Runs a scenario of one step with a gateway and drones, as `halley fleet run` does.
   * @param {string} name @param {GatewayOptions} gateway @param {Partial<import('../fleet/scenarios/contract.js').Step>
   *   & Pick<import('../fleet/scenarios/contract.js').Step, 'settings' | 'seconds'>} step
   * @returns {Promise<import('../fleet/runner/result.js').RunResult>} @throws {Error} it did not go to its end
   */
  async runScenario(name, { workers, flags, ...gateway }, step) {
    const abort = new AbortController()
    this.ends.push(() => abort.abort())
    const { progress, warning } = this.io
    const text = `${step.settings.n} connections`
    const { result, failure } = await runScenario({
      scenario: {
        ...{ name, summary: name, source: '', machine: '', load: text, scaled: '', published: [] },
        plan: () => ({
          drones: 1,
          gateway: { workers, nodeFlags: flags, config: configOf(gateway) },
          steps: [{ name, ramp: 0, settle: 1, ...step }],
          size: { connections: step.settings.n ?? 0, text },
          differs: [],
        }),
      },
      scale: 1,
      out: await this.folder(),
      provider: local,
      single: true,
      signal: abort.signal,
      progress: line => progress(`${name}: ${line}`),
      log: () => {},
    })
    if (failure !== '') throw new Error(failure)
    for (const note of result.notes) warning(note)
    return result
  }

  /** @returns {Promise<string>} address of a Redis that keeps nothing */
  async startRedis() {
    const redis = new RedisProcess(await this.folder(), 'none')
    this.ends.push(() => redis.stop())
    await redis.start()
    return redis.address
  }

  /** @returns {Promise<string>} a new folder, removed by `stop` */
  async folder() {
    const folder = await mkdtemp(join(tmpdir(), 'halley-bench-'))
    this.ends.push(() => rm(folder, { recursive: true, force: true }))
    return folder
  }

  /** Ends everything that was started, the last first. */
  async stop() {
    for (const end of this.ends.splice(0).reverse()) await end()
  }
}

/**
 * A program that measures variants in turn. @template {{runs: number, json: boolean}} O its options
 * @extends {ServerRun<O>}
 */
export class VariantsRun extends ServerRun {
  /**
   * Prints a line of JSON for each run, or a table of medians. After each run everything is ended that it has started.
   * @template V
   * @param {{scenario: string, [field: string]: string}} labels
   * @param {Record<string, V>} variants
   * @param {(variant: V) => Promise<Record<string, number>>} measure
   * @returns {Promise<Record<string, Record<string, number>>>} medians of each variant
   */
  async compare(labels, variants, measure) {
    const { runs, json } = this.options
    /** @type {Record<string, Record<string, number>[]>} */
    const results = {}
    for (let run = 1; run <= runs; run++) {
      for (const [name, variant] of Object.entries(variants)) {
        this.io.progress(`${labels.scenario} ${name}: run ${run} of ${runs}`)
        const result = await measure(variant)
        await this.stop()
        ;(results[name] ??= []).push(result)
        if (json) this.io.print(`${JSON.stringify({ ...labels, variant: name, ...result })}\n`)
      }
    }
    this.io.progress('')
    const columns = Object.entries(results).map(([name, all]) => ({ name, result: medians(all) }))
    if (!json) this.io.print(`${table(Object.values(labels).join(', '), columns)}\n`)
    return Object.fromEntries(columns.map(({ name, result }) => [name, result]))
  }
}

/**
 * Output of one part of a measurement: its name precedes each text.
 * @param {Io} io @param {string} name @returns {import('./load.js').Show}
 */
export const prefixedOutput = ({ progress, warning }, name) => ({
  progress: text => progress(`${name}: ${text}`),
  warning: text => warning(`${name}: ${text}`),
})

/**
 * Prints one result as a table, or as a line of JSON.
 * @param {Io} io @param {boolean} json
 * @param {{scenario: string, [field: string]: string | number}} labels of the line @param {string} column of the table
 * @param {Record<string, number>} result
 */
export const printResult = ({ print }, json, labels, column, result) =>
  print(
    `${json ? JSON.stringify({ ...labels, ...result }) : table(labels.scenario, [{ name: column, result }])}\n`,
  )

/**
 * Calls the server API. @param {Api} api @param {string} method @param {string} body JSON
 * @returns {Promise<boolean>} whether it succeeded; rejects without a connection
 */
export async function post({ url, key }, method, body) {
  const response = await fetch(`${url}/api/${method}`, {
    method: 'POST',
    headers: { 'X-API-Key': key },
    body,
  })
  return response.status === 200 && !(await response.text()).startsWith('{"error"')
}
