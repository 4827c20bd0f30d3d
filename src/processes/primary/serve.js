// The gateway of `halley serve`: signals, the terminal and systemd around primary.js.

import { closeSync, openSync } from 'node:fs'
import { isLoopback } from '../../config/profile.js'
import { collector } from '../../metrics/heap-trim.js'
import { openLog, Primary } from './primary.js'
import { ServiceManager } from './service-manager.js'
import { showDashboard } from './terminal-view.js'

/** @import { Config } from '../../config/options.js' */
/** @import { Logger } from 'pino' */
/** @import { LogOutput } from '../../base/log.js' */
/** @import { WorkerPool } from './worker-pool.js' */

/** Maximum time to flush the log on exit, ms. */
const DRAIN_TIMEOUT_MS = 500

/**
 * @typedef {object} PrimaryStart
 * @property {Config} config
 * @property {string[]} warnings
 * @property {'development' | 'configured'} profile
 * @property {string} generatedKey of the development profile, '' if none
 * @property {string} ended variables that disabled the development profile, '' if none
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
  // An early exit would lose a snapshot being restored.
  const { type, memory } = config.engine
  const restores = type === 'memory' && memory.snapshot_file !== ''
  /** Signals received during startup. */
  let early = 0
  const end = () => {
    if (primary === null) {
      if (++early > 1 || !restores) process.exit(early - 1)
    } else if (primary.stopping) {
      log.warn('second signal: exiting immediately')
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
    // Failures are already logged.
    else primary?.reload().catch(() => {})
  })

  primary = await Primary.create({ config, log, output, terminal, read, service })
  const { pool, telemetry } = primary
  let endDashboard = async () => {}
  primary.onStopping = async () => {
    service.stopping()
    // Later log lines must appear in the terminal: free it first.
    await endDashboard()
    log.info('shutting down')
  }
  primary.onStopped = async clean => {
    if (clean) log.info('gateway stopped')
    else log.error('shutdown.timeout exceeded: remaining workers were killed')
    await output.drained(DRAIN_TIMEOUT_MS)
    process.exit(clean ? 0 : 1)
  }
  if (early > 0) return primary.stop()
  await primary.start()
  announce(pool, start, log, terminal)
  service.ready()
  // Collects startup garbage: V8 returns memory 8 s after a collection, here about 8 MB.
  collector()('major')
  const shown = dashboard && terminal && env.TERM !== 'dumb' && process.stdin.isTTY
  if (!shown || telemetry.socket === null || primary.stopping) return
  telemetry.hold(true)
  endDashboard = showDashboard(
    telemetry.socket,
    { ...env, HALLEY_GENERATED_KEY: generatedKey },
    ({ stop: requested, fault }) => {
      telemetry.hold(false)
      if (terminalGone()) return
      if (fault !== '') log.error({ reason: fault }, 'dashboard failed; the gateway keeps running')
      else if (!requested && !primary.stopping)
        log.info({ url: pool.url }, 'dashboard closed; the gateway keeps running')
      if (requested) primary.stop()
    },
  )
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
  log.info({ url, workers: slots.length, driver }, 'halley is listening')
  if (ended !== '')
    log.info({ variables: ended }, 'development profile disabled by HALLEY_ variables; use --dev to keep it')
  if (profile !== 'development') return
  if (!terminal) {
    const key = generatedKey === '' ? null : { api_key: generatedKey }
    return log.info(
      { url, ...key },
      `development profile: anonymous clients, ${key === null ? 'configured' : 'generated'} API key`,
    )
  }
  const where = isLoopback(config.http_server.address) ? ', on this machine only' : ''
  const own = config.admin.password === generatedKey ? '    (for the API and the admin page)' : ''
  const key = generatedKey === '' ? '(the configured http_api.key)' : `${generatedKey}${own}`
  const sent = generatedKey === '' ? 'KEY' : generatedKey
  process.stdout.write(`
  Halley is up: development profile${where}

    page     ${url}/
    admin    ${url}/admin
    key      ${key}

    curl ${url}/api/publish -H 'X-API-Key: ${sent}' -d '{"channel":"news","data":{"hello":"world"}}'

`)
}
