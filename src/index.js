// The public API: starts a gateway from a program of your own.

import { ConfigError, loadConfig } from './config/load.js'
import { checkExposure } from './config/profile.js'
import { createLog, LogOutput } from './log.js'
import { Telemetry } from './primary/telemetry.js'
import { WorkerPool } from './primary/worker-pool.js'

/** @import { Logger } from 'pino' */

export { ConfigError }

/**
 * @typedef {object} RunningGateway
 * @property {string} url address it listens on
 * @property {() => Promise<void>} stop makes all clients reconnect; resolves when the last worker has ended. Further
 *   calls return the same promise
 */

/**
 * Starts a gateway: this process becomes the primary and forks the workers. Without signal handlers: call `stop`.
 * @param {object} [options] at least one of:
 * @param {string} [options.file] a configuration file, .json or .yaml
 * @param {Record<string, unknown>} [options.config] as in a file; values of the file win
 * @param {Logger} [options.log] of the primary; workers log as `log.*` of the configuration says
 * @returns {Promise<RunningGateway>} when every worker listens
 * @throws {ConfigError} if the configuration is invalid or unsafe to expose
 * @throws {Error} if it cannot listen or reach the engine
 */
export async function createGateway({ file, config: base, log } = {}) {
  const { config, warnings } = loadConfig({ file, base })
  const all = checkExposure(config, warnings)
  const output = log ? null : new LogOutput(config.log, false)
  output?.check()
  const ownLog = log ?? createLog(config.log, /** @type {LogOutput} */ (output))
  for (const warning of all) ownLog.warn(warning)
  const pool = await WorkerPool.create(config, ownLog, false)
  /** @type {Promise<void> | null} */
  let stopped = null
  const end = async () => {
    telemetry.stopping()
    await pool.stop()
    await telemetry.close()
  }
  // A stats client may have stopped it.
  const stop = () => (stopped ??= end())
  const telemetry = new Telemetry({ pool, log: ownLog, output: null, onStop: stop })
  try {
    await pool.start()
    await telemetry.start({ runtimeDir: process.env.XDG_RUNTIME_DIR })
  } catch (error) {
    await telemetry.close()
    throw error
  }
  return { url: pool.url, stop }
}
