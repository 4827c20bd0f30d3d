// The gateway of `halley serve`: signals, the terminal and systemd around primary.js.

import { closeSync, openSync } from 'node:fs'
import { isLoopback } from '../../config/profile.js'
import { collector } from '../../metrics/heap-trim.js'
import { openLog, Primary } from './primary.js'
import { ServiceManager } from './service-manager.js'
import { TerminalView } from './terminal-view.js'

/** @import { Config } from '../../config/options.js' */
/** @import { Logger } from 'pino' */
/** @import { LogOutput } from '../../base/log.js' */
/** @import { WorkerPool } from './worker-pool.js' */

/** Time for a reader of the log that is behind, at the end, ms. */
const DRAIN_TIMEOUT_MS = 500

/**
 * @typedef {object} PrimaryStart
 * @property {Config} config
 * @property {string[]} warnings
 * @property {'development' | 'configured'} profile
 * @property {string} generatedKey of the development profile, '' if none
 * @property {string} ended the variables that ended the development profile, '' if none
 * @property {() => {config: Config, warnings: string[]}} reload reads the configuration again
 * @property {boolean} [dashboard] show a dashboard if the standard streams are a terminal
 */

/** @param {PrimaryStart} start @returns {Promise<void>} when every worker listens */
export async function startPrimary(start) {
  const { config, generatedKey, reload: read, dashboard = false } = start
  const terminal = Boolean(process.stdout.isTTY)
  const opened = openLog(start, terminal)
  const { log } = opened
  const output = /** @type {LogOutput} */ (opened.output)
  const { env, pid } = process
  /** @type {Primary | null} */
  let primary = null
  const service = new ServiceManager({ env, pid, log, healthy: () => primary?.healthy === true })
  // A snapshot that is being taken over would be lost.
  const { type, memory } = config.engine
  const takesOver = type === 'memory' && memory.snapshot_file !== ''
  /** Requests to end before there is a gateway. */
  let early = 0
  const end = () => {
    if (primary === null) {
      if (++early > 1 || !takesOver) process.exit(early - 1)
    } else if (primary.stopping) {
      log.warn('second signal: the gateway ends at once')
      primary.pool.kill()
      process.exit(1)
    } else primary.stop()
  }
  process.on('SIGTERM', end)
  process.on('SIGINT', end)
  process.on('SIGUSR2', () => {
    if (primary !== null && !primary.pool.restarting) primary.pool.rollingRestart('SIGUSR2')
  })
  process.on('SIGHUP', () => {
    if (terminal && terminalGone()) {
      // Writing to a closed terminal fails. SIGHUP may arrive twice: from the kernel and from the shell.
      output.shown = false
      if (primary === null) end()
      else primary.stop()
    }
    // It logs its failure itself.
    else primary?.reload().catch(() => {})
  })

  primary = await Primary.create({ config, log, output, terminal, read, service })
  const { pool, telemetry } = primary
  /** @type {TerminalView | null} */
  let view = null
  primary.onStopping = async () => {
    service.stopping()
    // Later log lines must appear in the terminal: free it first.
    await view?.end()
    log.info('shutting down')
  }
  primary.onStopped = async clean => {
    if (clean) log.info('bye')
    else log.error('shutdown.timeout has passed: the remaining workers were killed')
    await output.drained(DRAIN_TIMEOUT_MS)
    process.exit(clean ? 0 : 1)
  }
  if (early > 0) return primary.stop()
  await primary.start()
  announce(pool, start, log, terminal)
  service.ready()
  // Collects the garbage of the start: V8 gives memory back 8 s after a collection, here about 8 MB.
  collector()('major')
  const shown = dashboard && terminal && env.TERM !== 'dumb' && process.stdin.isTTY
  if (!shown || telemetry.socket === null || primary.stopping) return
  view = new TerminalView(
    telemetry.socket,
    { ...env, HALLEY_GENERATED_KEY: generatedKey },
    ({ stop: requested, fault }) => {
      telemetry.hold(false)
      if (terminalGone()) return
      if (fault !== '') log.error(`the dashboard failed: ${fault}; the gateway keeps running`)
      else if (!requested && !primary.stopping)
        log.info({ url: pool.url }, 'dashboard closed; the gateway keeps running')
      if (requested) primary.stop()
    },
  )
  telemetry.hold(true)
  view.start()
}

/** The kernel sends SIGHUP when the controlling terminal closes. */
function terminalGone() {
  try {
    closeSync(openSync('/dev/tty', 'r'))
    return false
  } catch {
    return true
  }
}

/**
 * Logs the address of the gateway; in a terminal, prints the development profile's key and an example.
 * @param {WorkerPool} pool @param {PrimaryStart} start @param {Logger} log @param {boolean} terminal
 */
function announce(
  { config, url, server: { driver }, slots },
  { profile, generatedKey, ended },
  log,
  terminal,
) {
  log.info({ url, workers: slots.length, driver }, 'halley listens')
  if (ended !== '')
    log.info(
      { variables: ended },
      'the development profile is off: variables configure the gateway; --dev keeps it',
    )
  if (profile !== 'development') return
  if (!terminal) {
    const key = generatedKey === '' ? null : { api_key: generatedKey }
    return log.info(
      { url, ...key },
      `development profile: anonymous clients, ${key === null ? 'configured' : 'generated'} API key`,
    )
  }
  const where = isLoopback(config.http_server.address) ? ', on this machine only' : ''
  const own = config.admin.password === generatedKey ? '    (of the API, and of the admin page)' : ''
  const key = generatedKey === '' ? '(http_api.key of the configuration)' : `${generatedKey}${own}`
  const sent = generatedKey === '' ? 'KEY' : generatedKey
  process.stdout.write(`
  Halley is up: development profile${where}

    page     ${url}/
    admin    ${url}/admin
    key      ${key}

    curl ${url}/api/publish -H 'X-API-Key: ${sent}' -d '{"channel":"news","data":{"hello":"world"}}'

`)
}
