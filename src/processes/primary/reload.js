import { statSync } from 'node:fs'
import { checkEngine } from '../../channels/broker/index.js'
import { checkDriver } from '../../clients/server/index.js'
import { changesBetween, withChanges } from '../../config/changes.js'
import { ConfigError } from '../../config/error.js'
import { withTlsOf } from '../../config/pem.js'

/** @import { Logger } from 'pino' */
/** @import { Config } from '../../config/options.js' */
/** @import { Change } from '../../config/options/make.js' */

/** Time for the check of a new configuration, ms. */
const CHECK_TIMEOUT_MS = 10_000

/**
 * @typedef {object} Reloadable the workers
 * @property {Config} config in force
 * @property {{driver: string}} server of the workers: uws or node
 * @property {boolean} stopping
 * @property {(next: Config) => Promise<void>} applyConfig switches all workers; rejects if nothing has changed
 * @property {(reason: string) => Promise<boolean>} rollingRestart replaces all workers, one after another
 *
 * @typedef {object} ReloadParts
 * @property {Reloadable} pool
 * @property {Pick<Logger, 'info' | 'warn' | 'error'>} log
 * @property {() => {config: Config, warnings: string[]}} read reads all sources again
 * @property {(next: Config, now: Config, signal: AbortSignal) => Promise<void>} check builds what the workers will
 *   build; rejects if one of them could not. Nobody waits any more when the signal is aborted
 * @property {number} [checkTimeout] ms
 * @property {(config: Config) => void} applied for the parts of the primary
 * @property {{reloading: () => void, ready: () => void}} [service] is told when a reload begins and ends
 */

/**
 * A hooks module is loaded by new workers only, so another content of its file takes them.
 * @param {string} path '' = none @returns {string}
 */
function fileVersion(path) {
  if (path === '') return ''
  try {
    const { size, mtimeMs } = statSync(path)
    return `${path} ${size} ${mtimeMs}`
  } catch (error) {
    // A new worker says what is wrong with it, if it still is.
    return `${path} ${error.code}`
  }
}

/** One line of an error with several. @param {Error} error */
const lineOf = error =>
  error instanceof ConfigError ? error.faults.join('; ') : error.message.replaceAll('\n', '; ')

/** @param {Config} next @param {Config} now whose port 0 is resolved @returns {Config} */
function withPort(next, now) {
  const { http_server: server } = next
  return server.port === 0 ? { ...next, http_server: { ...server, port: now.http_server.port } } : next
}

/**
 * Reloads the configuration, whole or not at all: everything is read, checked and built before any worker learns of
 * it. Requests that arrive during a reload cause one more after it, because the files may have changed meanwhile.
 */
export class Reload {
  #pool
  #log
  #read
  #check
  #applied
  #service
  #checkTimeout
  /** Version of the hooks module that the workers have. */
  #module
  /** @type {Promise<string> | null} */
  #running = null
  /** @type {Promise<string> | null} */
  #next = null

  /** @param {ReloadParts} parts */
  constructor({ pool, log, read, check, applied, service, checkTimeout = CHECK_TIMEOUT_MS }) {
    this.#pool = pool
    this.#log = log
    this.#read = read
    this.#check = check
    this.#applied = applied
    this.#service = service
    this.#checkTimeout = checkTimeout
    this.#module = fileVersion(pool.config.hooks.module)
  }

  /**
   * @returns {Promise<string>} one line that says what has changed; live options are in force
   * @throws {Error} of one line, which has been logged: nothing has changed
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
    this.#service?.reloading()
    try {
      return await this.#reload()
    } catch (error) {
      const reason = lineOf(error)
      this.#log.error({ reason }, 'configuration not reloaded')
      throw new Error(`configuration not reloaded: ${reason}`)
    } finally {
      if (!this.#pool.stopping) this.#service?.ready()
      if (this.#next === null) this.#running = null
    }
  }

  /** @param {Config} next @param {Config} now @throws {Error} it cannot be used, or the check takes too long */
  async #checkInTime(next, now) {
    const late = new AbortController()
    const timer = setTimeout(() => {
      late.abort(
        new Error(`the check of the new configuration did not end within ${this.#checkTimeout / 1000} s`),
      )
    }, this.#checkTimeout)
    try {
      const aborted = new Promise((_, reject) =>
        late.signal.addEventListener('abort', () => reject(late.signal.reason)),
      )
      await Promise.race([this.#check(next, now, late.signal), aborted])
    } finally {
      clearTimeout(timer)
    }
  }

  async #reload() {
    const pool = this.#pool
    const { config: read, warnings } = this.#read()
    const now = pool.config
    const given = withTlsOf(withPort(read, now), now)
    const changes = changesBetween(now, given, pool.server.driver)
    // Options that take a new start keep their values.
    const next = withChanges(now, given, ['live', 'workers'])
    const module = fileVersion(next.hooks.module)
    if (module !== this.#module && changes.workers.length === 0) changes.workers.push('hooks.module')
    await this.#checkInTime(next, now)
    if (pool.stopping) throw new Error('the gateway is shutting down')
    await pool.applyConfig(next)
    this.#module = module
    this.#applied(next)
    for (const warning of warnings) this.#log.warn(warning)
    this.#log.info({ live: changes.live, new_workers: changes.workers }, 'configuration reloaded')
    for (const key of changes.start) this.#log.warn({ key }, 'the new value of this key takes a new start')
    if (changes.workers.length > 0) {
      // It reports its own failures, and the old workers go on.
      pool.rollingRestart(`new values of ${changes.workers.join(', ')}`).catch(() => {})
    }
    return outcome(changes)
  }
}

/** @param {Record<Change, string[]>} changes @returns {string} one line */
function outcome({ live, workers, start }) {
  const parts = [
    live.length > 0 && `in force: ${live.join(', ')}`,
    workers.length > 0 && `all workers are being replaced for: ${workers.join(', ')}`,
    start.length > 0 && `after a new start: ${start.join(', ')}`,
  ].filter(Boolean)
  return parts.length === 0 ? 'nothing has changed' : parts.join('; ')
}

/**
 * Builds what every worker builds of a configuration, so that one which no worker could start with is refused before
 * any of them gets it.
 * @param {Config} config checked
 * @throws {Error} naming the option
 */
export async function checkUsable(config) {
  // Loaded on use: the primary checks no tokens.
  const { createAuth } = await import('../../clients/auth/index.js')
  createAuth(config)
  await checkDriver(config.http_server.driver)
}

/**
 * For a reload: also connects to an engine whose options are changed.
 * @param {Config} next @param {Config} now @param {Logger} log @param {AbortSignal} signal ends the wait for an engine
 * @throws {Error}
 */
export async function checkReload(next, now, log, signal) {
  await checkUsable(next)
  const engine = JSON.stringify(next.engine)
  if (engine !== JSON.stringify(now.engine)) await checkEngine(next, log, signal)
}
