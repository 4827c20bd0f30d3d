// The public API: starts a gateway from your program.

import cluster from 'node:cluster'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ApiError } from './backends/api/api-error.js'
import { ConfigError } from './config/error.js'
import { loadConfig } from './config/load.js'
import { didYouMean } from './config/nearest.js'
import { checkExposure, configureServer } from './config/profile.js'
import { Gateway } from './processes/primary/gateway.js'
import { EventSource } from './processes/primary/gateway-events.js'
import { openLog, Primary } from './processes/primary/primary.js'
import { PrimaryApi } from './processes/primary/primary-api.js'

/** @import { Logger } from 'pino' */

export { ApiError, ConfigError, Gateway }

const OPTIONS = ['file', 'config', 'hooks', 'log']

/**
 * @typedef {import('./backends/api/server-api.js').Command} Command
 * @typedef {import('./backends/api/server-api.js').Outcome} Outcome
 * @typedef {import('./backends/api/server-api.js').ConnectionInfo} ConnectionInfo
 * @typedef {import('./backends/api/server-api.js').ConnectionsOptions} ConnectionsOptions
 * @typedef {import('./backends/api/server-api.js').PublishOptions} PublishOptions
 * @typedef {import('./backends/api/server-api.js').AckOptions} AckOptions
 * @typedef {import('./backends/api/server-api.js').RequestTarget} RequestTarget
 * @typedef {import('./backends/api/server-api.js').ClientAnswer} ClientAnswer
 * @typedef {import('./backends/api/server-api.js').Acks} Acks
 * @typedef {import('./backends/api/server-api.js').Position} Position
 * @typedef {import('./backends/api/server-api.js').MapEntry} MapEntry
 * @typedef {import('./backends/api/server-api.js').MapPublishOptions} MapPublishOptions
 * @typedef {import('./backends/api/server-api.js').MapResult} MapResult
 * @typedef {import('./backends/api/server-api.js').MapStateOptions} MapStateOptions
 * @typedef {import('./backends/api/server-api.js').MapStreamOptions} MapStreamOptions
 *
 * @typedef {object} GatewayOptions
 * @property {string | URL} [file] a configuration file, .json or .yaml
 * @property {Record<string, unknown>} [config] as in a file; the file takes precedence
 * @property {string | URL} [hooks] ES module with handlers (docs/hooks.md), instead of `hooks.module` of the
 *   configuration. Relative to the working directory
 * @property {Logger} [log] of the primary, a pino logger; workers use `log.*` of the configuration
 */

/**
 * Starts a gateway: this process becomes the primary and forks the workers. Without `file` and `config` it uses the
 * development profile of `npm start`: 127.0.0.1:8000, anonymous clients, a generated API key.
 *
 * It handles no signals: call `stop`.
 * @param {GatewayOptions} [options]
 * @returns {Promise<Gateway>} when every worker listens
 * @throws {ConfigError} if the configuration is invalid or unsafe to expose
 * @throws {TypeError} if an option is unknown or has the wrong type
 * @throws {Error} if it cannot listen, reach the engine or fork
 */
export async function createGateway(options = {}) {
  const { file, base, hooks, log } = readOptions(options)
  if (cluster.isWorker)
    throw new Error(
      'createGateway: this process is a worker of node:cluster and cannot fork; start the gateway in its primary',
    )
  let own = base
  const developed = file === undefined && base === undefined
  const flags = { 'hooks.module': hooks }
  const read = () => {
    if (developed && own === undefined) return configureServer({ flags }, { key })
    const { config, warnings } = loadConfig({ file, base: own, flags })
    return { config, warnings: checkExposure(config, warnings) }
  }
  /** @type {string | undefined} generated: a reload must not change it */
  let key
  const first = read()
  const { config } = first
  key = config.http_api.key
  const { log: ownLog, output } = openLog(first, false, log)
  const primary = await Primary.create({ config, log: ownLog, output, terminal: false, read })
  const { pool } = primary
  const api = new PrimaryApi(pool, ownLog)
  const events = new EventSource(message => pool.sendToAll(message))
  pool.observers.push(events)
  const reloadOne = async (/** @type {Record<string, unknown> | undefined} */ given) => {
    const before = own
    if (given !== undefined) own = readOptions({ config: given }).base
    try {
      const outcome = await primary.reload()
      events.emit('reloaded', outcome)
      return outcome
    } catch (error) {
      if (given !== undefined) own = before
      throw error
    }
  }
  /** Reloads run sequentially: a rejected configuration must not revert a later one. @type {Promise<unknown>} */
  let reloaded = Promise.resolve()
  const reload = (/** @type {Record<string, unknown> | undefined} */ given) => {
    const outcome = reloaded.then(() => reloadOne(given))
    reloaded = outcome.catch(() => {})
    return outcome
  }
  primary.ownCounts = () => api.drainCounts()
  primary.onReload = async () => {
    if (file === undefined)
      throw new Error('no configuration file: the embedding program passed the configuration')
    return reload(undefined)
  }
  primary.onStopping = () => {
    events.emit('stopping')
    return api.end()
  }
  primary.onStopped = () => events.emit('stopped')
  await primary.start()
  if (developed) {
    const { url } = pool
    ownLog.info({ url, api_key: key }, 'development profile: anonymous clients, generated API key')
  }
  return new Gateway({
    pool,
    send: (name, text, repeatable, wait) => api.send(name, text, repeatable, wait),
    events,
    stop: () => primary.stop(),
    reload,
  })
}

/**
 * @param {any} options
 * @returns {{file?: string, base?: Record<string, unknown>, hooks?: string, log?: Logger}}
 * @throws {TypeError}
 */
function readOptions(options) {
  if (!isObject(options)) throw new TypeError('the options of createGateway must be an object')
  for (const name of Object.keys(options)) {
    if (OPTIONS.includes(name)) continue
    const near = didYouMean(name, OPTIONS)
    throw new TypeError(`createGateway has no option ${JSON.stringify(name.slice(0, 64))}${near}`)
  }
  const { config, log } = options
  if (config !== undefined && !isObject(config))
    throw new TypeError('createGateway: config must be an object, as in a configuration file')
  if (
    log !== undefined &&
    ['debug', 'info', 'warn', 'error'].some(level => typeof log?.[level] !== 'function')
  )
    throw new TypeError('createGateway: log must be a pino logger')
  return { file: pathOf(options, 'file'), base: config, hooks: pathOf(options, 'hooks'), log }
}

/** @param {any} options @param {'file' | 'hooks'} name @returns {string | undefined} @throws {TypeError} */
function pathOf(options, name) {
  const { [name]: value } = options
  if (value === undefined) return undefined
  if (value instanceof URL && value.protocol === 'file:') return fileURLToPath(value)
  if (typeof value === 'string' && value !== '') return resolve(value)
  throw new TypeError(`createGateway: ${name} must be a path or a file: URL`)
}

/** @param {unknown} value */
const isObject = value => value !== null && typeof value === 'object' && !Array.isArray(value)
