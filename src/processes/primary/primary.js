// The composition root of a gateway. createGateway() (src/index.js) adds the interface for programs, `halley serve`
// (serve.js) adds signals, the terminal and systemd. May import every folder except cli/ and worker/ (forked).
//
// worker-pool.js  forks one worker per core, replaces dead ones, hosts the embedded broker, drains on shutdown
// reload.js       rereads and checks the configuration, then switches all workers together (config-switch.js)
// telemetry.js    merges the samples of all workers once a second; CSV file, stats socket, log lines, GC schedule

import { createLog, LogOutput, levelOf } from '../../base/log.js'
import { checkReload, Reload } from './reload.js'
import { Telemetry } from './telemetry.js'
import { WorkerPool } from './worker-pool.js'

/** @import { Logger } from 'pino' */
/** @import { Config } from '../../config/options.js' */
/** @import { Counts } from '../../metrics/schema.js' */
/** @import { ReloadParts } from './reload.js' */

/**
 * The log of the primary, with the warnings of its configuration.
 * @param {{config: Config, warnings: string[]}} read
 * @param {boolean} terminal whether standard output is one
 * @param {Logger} [given] of the embedding program
 * @returns {{log: Logger, output: LogOutput | null}} output: null for a given log
 * @throws {Error} the log cannot be written
 */
export function openLog({ config, warnings }, terminal, given) {
  const output = given ? null : new LogOutput(config.log, terminal)
  output?.check()
  const log = given ?? createLog(config.log, /** @type {LogOutput} */ (output))
  for (const warning of warnings) log.warn(warning)
  return { log, output }
}

/** A gateway: its workers, telemetry and reloads. */
export class Primary {
  /** Called before the workers drain. @type {() => void | Promise<void>} */
  onStopping = () => {}
  /** Called last; `clean`: no worker was killed. @type {(clean: boolean) => void | Promise<void>} */
  onStopped = () => {}
  /** Reloads the configuration for a stats client. @type {() => Promise<string>} */
  onReload = () => this.reload()
  /** Call counts of the primary since the last call. @type {() => Counts | null} */
  ownCounts = () => null
  #reloads
  /** @type {Promise<void> | null} */
  #stopped = null

  /**
   * Checks port and engine, and restores the snapshot of the last run; starts nothing yet.
   * @param {object} options
   * @param {Config} options.config
   * @param {Logger} options.log
   * @param {LogOutput | null} options.output
   * @param {boolean} options.terminal whether workers format log lines for a terminal
   * @param {ReloadParts['read']} options.read
   * @param {ReloadParts['service']} [options.service]
   * @throws {Error} the port is in use, the engine is unreachable or the snapshot cannot be replaced
   */
  static async create(options) {
    return new Primary(await WorkerPool.create(options.config, options.log, options.terminal), options)
  }

  /** @param {WorkerPool} pool @param {Omit<Parameters<typeof Primary.create>[0], 'config' | 'terminal'>} options */
  constructor(pool, { log, output, read, service }) {
    this.pool = pool
    this.telemetry = new Telemetry({
      pool,
      log,
      output,
      onStop: () => this.stop(),
      onReload: () => this.onReload(),
      ownCounts: () => this.ownCounts(),
    })
    this.#reloads = new Reload({
      pool,
      log,
      read,
      service,
      check: (next, now, signal) => checkReload(next, now, log, signal),
      applied: config => {
        if (output) log.level = levelOf(config.log)
        this.telemetry.reloaded(config)
      },
    })
  }

  /** Whether a worker listens. */
  get healthy() {
    return this.pool.slots.some(({ current }) => current?.listening)
  }

  /** Whether `stop` was called. */
  get stopping() {
    return this.#stopped !== null
  }

  /** @returns {Promise<void>} when every worker listens @throws {Error} a worker failed to start */
  async start() {
    try {
      await this.pool.start()
      await this.telemetry.start({ runtimeDir: process.env.XDG_RUNTIME_DIR })
    } catch (error) {
      await this.telemetry.close()
      throw error
    }
  }

  /** See Reload.request(). */
  reload() {
    return this.#reloads.request()
  }

  /** Later calls return the same promise. @returns {Promise<void>} when the last worker has exited */
  stop() {
    return (this.#stopped ??= this.#stop())
  }

  async #stop() {
    this.telemetry.stopping()
    await this.onStopping()
    const clean = await this.pool.stop()
    await this.telemetry.close()
    await this.onStopped(clean)
  }
}
