import { checkEngine } from '../../channels/broker/index.js'
import { checkDriver } from '../../clients/server/index.js'

/** @import { Logger } from 'pino' */
/** @import { Config } from '../../config/load.js' */

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
