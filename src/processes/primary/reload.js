import { statSync } from 'node:fs'
import { checkEngine } from '../../channels/broker/index.js'
import { checkDriver } from '../../clients/server/index.js'
import { changesBetween, withChanges } from '../../config/changes.js'
import { ConfigError } from '../../config/error.js'
import { withTlsOf } from '../../config/pem.js'

/** @import { Logger } from 'pino' */
/** @import { Config } from '../../config/options.js' */
/** @import { Change } from '../../config/options/make.js' */

/** Time limit of a configuration check, in ms. */
const CHECK_TIMEOUT_MS = 10_000

/**
 * @typedef {object} Reloadable the workers
 * @property {Config} config current
 * @property {{driver: string}} server of the workers: uws or node
 * @property {boolean} stopping
 * @property {(next: Config) => Promise<void>} applyConfig switches all workers; rejects without changes
 * @property {(reason: string) => Promise<boolean>} rollingRestart replaces all workers, one after another
 *
 * @typedef {object} ReloadParts
 * @property {Reloadable} pool
 * @property {Pick<Logger, 'info' | 'warn' | 'error'>} log
 * @property {() => {config: Config, warnings: string[]}} read reads all sources again
 * @property {(next: Config, now: Config, signal: AbortSignal) => Promise<void>} check rejects if the workers cannot
 *   use the configuration. Its result is ignored once the signal is aborted
 * @property {number} [checkTimeout] ms
 * @property {(config: Config) => void} applied updates the primary
 * @property {{reloading: () => void, ready: () => void}} [service] called when a reload begins and ends
 */

/**
 * Version of the hooks module: only new workers load a changed file.
 * @param {string} path '' = none @returns {string}
 */
function fileVersion(path) {
  if (path === '') return ''
  try {
    const { size, mtimeMs } = statSync(path)
    return `${path} ${size} ${mtimeMs}`
  } catch (error) {
    // A new worker reports the error.
    return `${path} ${error.code}`
  }
}

/** @param {Error} error with one or more faults @returns {string} one line */
const lineOf = error =>
  error instanceof ConfigError ? error.faults.join('; ') : error.message.replaceAll('\n', '; ')

/** @param {Config} next @param {Config} now with port 0 resolved @returns {Config} */
function withPort(next, now) {
  const { http_server: server } = next
  return server.port === 0 ? { ...next, http_server: { ...server, port: now.http_server.port } } : next
}

/**
 * Reloads the configuration atomically: reads and checks it before any worker receives it.
 * Requests during a reload start one more afterwards, because the files may have changed since.
 */
export class Reload {
  #parts
  /** Version of the hooks module in use. */
  #module
  /** @type {Promise<string> | null} */
  #running = null
  /** @type {Promise<string> | null} */
  #next = null

  /** @param {ReloadParts} parts */
  constructor(parts) {
    this.#parts = parts
    this.#module = fileVersion(parts.pool.config.hooks.module)
  }

  /**
   * @returns {Promise<string>} the changes, in one line; live options are applied
   * @throws {Error} one line, already logged; the configuration is unchanged
   */
  request() {
    if (this.#running === null) return this.#start()
    this.#next ??= this.#running.catch(() => {}).then(() => this.#start())
    return this.#next
  }

  #start() {
    this.#next = null
    this.#running = this.#run()
    return this.#running
  }

  async #run() {
    const { service, pool, log } = this.#parts
    service?.reloading()
    try {
      return await this.#reload()
    } catch (error) {
      const reason = lineOf(error)
      log.error({ reason }, 'configuration not reloaded')
      throw new Error(`configuration not reloaded: ${reason}`)
    } finally {
      if (!pool.stopping) service?.ready()
      if (this.#next === null) this.#running = null
    }
  }

  /**
   * @param {Config} next @param {Config} now
   * @returns {Promise<void>}
   * @throws {Error} it cannot be used, or the check timed out
   */
  #check(next, now) {
    const { check, checkTimeout = CHECK_TIMEOUT_MS } = this.#parts
    const late = new AbortController()
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        const reason = `checking the new configuration timed out after ${checkTimeout / 1000} s`
        late.abort(new Error(reason))
        reject(late.signal.reason)
      }, checkTimeout)
      check(next, now, late.signal)
        .then(resolve, reject)
        .finally(() => clearTimeout(timer))
    })
  }

  async #reload() {
    const { pool, log, read, applied } = this.#parts
    const { config, warnings } = read()
    const now = pool.config
    const given = withTlsOf(withPort(config, now), now)
    const changes = changesBetween(now, given, pool.server.driver)
    // Options that require a restart keep their values.
    const next = withChanges(now, given, ['live', 'workers'])
    const module = fileVersion(next.hooks.module)
    if (module !== this.#module && changes.workers.length === 0) changes.workers.push('hooks.module')
    await this.#check(next, now)
    if (pool.stopping) throw new Error('the gateway is shutting down')
    await pool.applyConfig(next)
    this.#module = module
    applied(next)
    for (const warning of warnings) log.warn(warning)
    log.info({ live: changes.live, new_workers: changes.workers }, 'configuration reloaded')
    for (const key of changes.start) log.warn({ key }, 'the new value requires a restart')
    if (changes.workers.length > 0) {
      // Logs its failures; the old workers keep running.
      pool.rollingRestart(`new values of ${changes.workers.join(', ')}`).catch(() => {})
    }
    return outcome(changes)
  }
}

/** @param {Record<Change, string[]>} changes @returns {string} one line */
function outcome({ live, workers, start }) {
  const parts = [
    live.length > 0 && `applied: ${live.join(', ')}`,
    workers.length > 0 && `replacing all workers to apply: ${workers.join(', ')}`,
    start.length > 0 && `requires a restart: ${start.join(', ')}`,
  ].filter(Boolean)
  return parts.length === 0 ? 'no changes' : parts.join('; ')
}

/**
 * Checks that workers can use a valid configuration.
 * @param {Config} config
 * @throws {Error} naming the option
 */
export async function checkUsable(config) {
  // Lazy import: the primary verifies no tokens.
  const { createAuth } = await import('../../clients/auth/index.js')
  createAuth(config)
  await checkDriver(config.http_server.driver)
}

/**
 * `checkUsable`; also connects to the engine if its options changed.
 * @param {Config} next
 * @param {Config} now
 * @param {Logger} log
 * @param {AbortSignal} signal ends the wait for the engine
 * @throws {Error}
 */
export async function checkReload(next, now, log, signal) {
  await checkUsable(next)
  const engine = JSON.stringify(next.engine)
  if (engine !== JSON.stringify(now.engine)) await checkEngine(next, log, signal)
}
