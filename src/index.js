// The public API, for those who start a gateway from a program of their own.

import { ConfigError, loadConfig } from './config/load.js'
import { checkExposure } from './config/profile.js'
import { createLog, LogOutput } from './log.js'
import { Telemetry } from './primary/telemetry.js'
import { WorkerPool } from './primary/worker-pool.js'

export { ConfigError }

/**
 * @typedef {object} RunningGateway
 * @property {string} url where it listens
 * @property {() => Promise<void>} stop tells all clients to come back, and resolves when the last worker has ended,
 *   however often it is called
 */

/**
 * Starts a gateway: this process becomes the primary, workers are forked from it. It touches no signals; `stop` it.
 *
 * @param {object} [options] at least one of:
 * @param {string} [options.file] a configuration file, .json or .yaml
 * @param {Record<string, unknown>} [options.config] a configuration like that of a file; the file wins
 * @param {import('pino').Logger} [options.log] for what the primary says; workers log as `log.*` of the configuration says
 * @returns {Promise<RunningGateway>} when every worker listens
 * @throws {ConfigError} for a configuration that is not valid, or not safe to expose
 * @throws {Error} when it cannot listen, or the engine cannot be worked with
 */
export async function createGateway({ file, config: base, log } = {}) {
  const { config, warnings } = loadConfig({ file, base })
  checkExposure(config, warnings)
  const ownLog = log ?? createLog(config.log, new LogOutput(config.log, false))
  for (const warning of warnings) ownLog.warn(warning)
  const pool = await WorkerPool.create(config, ownLog, false)
  /** @type {Promise<void> | null} */
  let stopped = null
  const end = async () => {
    telemetry.stopping()
    await pool.stop()
    await telemetry.close()
  }
  // Somebody at the stats socket may have asked for it before.
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
