// The primary process of a gateway, started by serve.js for `halley serve` and by src/index.js for embedding
// programs. It may import every folder but cli/ and worker/ (workers are forked, not imported); only cli/ imports it.
// worker-pool.js    forks one worker per core, replaces dead ones, hosts the embedded broker, drains on shutdown
// reload.js         reads the configuration again: checks it whole, then all workers switch at once (config-switch.js)
// telemetry.js      merges the workers' samples once a second; CSV file, stats socket, log lines, GC schedule
// service-manager.js  tells systemd when the gateway is ready, reloads, ends, and that it is alive
// terminal-view.js  runs the dashboard of `npm start` as a child process: its failure never ends the gateway

import { closeSync, openSync } from 'node:fs'
import { createLog, LogOutput, levelOf } from '../../base/log.js'
import { isLoopback } from '../../config/profile.js'
import { collector } from '../../metrics/heap-trim.js'
import { Reload } from './reload.js'
import { ServiceManager } from './service-manager.js'
import { Telemetry } from './telemetry.js'
import { TerminalView } from './terminal-view.js'
import { checkReload } from './usable.js'
import { WorkerPool } from './worker-pool.js'

/** @import { Logger } from 'pino' */

/** Time for a reader of the log that is behind, at the end, ms. */
const DRAIN_TIMEOUT_MS = 500
const SIGNALS = /** @type {const} */ (['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGUSR2'])

/**
 * @typedef {object} PrimaryStart
 * @property {any} config
 * @property {string[]} warnings
 * @property {'development' | 'configured'} profile
 * @property {string} generatedKey of the development profile, '' if none
 * @property {string} ended the variables that ended the development profile, '' if none
 * @property {() => {config: any, warnings: string[]}} [reload] reads the configuration again
 * @property {boolean} [dashboard] show a dashboard if the standard streams are a terminal
 */

/** @param {PrimaryStart} start @returns {Promise<void>} when every worker listens */
export async function startPrimary(start) {
  const { config: given, warnings, generatedKey, reload, dashboard = false } = start
  const terminal = Boolean(process.stdout.isTTY)
  const output = new LogOutput(given.log, terminal)
  output.check()
  const log = createLog(given.log, output)
  for (const warning of warnings) log.warn(warning)
  const { env, pid } = process
  const service = new ServiceManager({
    env,
    pid,
    log,
    healthy: () => pool.slots.some(({ current }) => current?.listening),
  })
  let signals = 0
  // Until there is a pool nothing can be reloaded or replaced. A snapshot that is being taken over would be lost.
  const { type, memory } = given.engine
  const takesOver = type === 'memory' && memory.snapshot_file !== ''
  const early = (/** @type {string} */ signal) => {
    if (signal === 'SIGUSR2' || (signal === 'SIGHUP' && !(terminal && terminalGone()))) return
    if (++signals > 1 || !takesOver) process.exit(signals - 1)
  }
  for (const signal of SIGNALS) process.on(signal, early)
  const pool = await WorkerPool.create(given, log, terminal)
  /** @type {TerminalView | null} */
  let view = null
  const end = async () => {
    if (++signals > 1) {
      log.warn('second signal: the gateway ends at once')
      pool.kill()
      process.exit(1)
    }
    service.stopping()
    telemetry.stopping()
    // Later log lines must appear in the terminal: free it first.
    await view?.end()
    log.info('shutting down')
    const clean = await pool.stop()
    await telemetry.close()
    if (clean) log.info('bye')
    else log.error('shutdown.timeout has passed: the remaining workers were killed')
    await output.drained(DRAIN_TIMEOUT_MS)
    process.exit(clean ? 0 : 1)
  }
  /** Unlike a second signal, a second call does not kill the workers. */
  const stop = () => {
    if (signals === 0) end()
  }
  const reloads = reload
    ? new Reload({
        pool,
        log,
        read: reload,
        check: (next, now, signal) => checkReload(next, now, log, signal),
        service,
        applied: config => {
          log.level = levelOf(config.log)
          telemetry.reloaded(config)
        },
      })
    : null
  const onReload = reloads ? () => reloads.request() : null
  const telemetry = new Telemetry({ pool, log, output, onStop: stop, onReload })
  process.on('SIGTERM', end)
  process.on('SIGINT', end)
  process.on('SIGUSR2', () => {
    if (!pool.restarting) pool.rollingRestart('SIGUSR2')
  })
  process.on('SIGHUP', () => {
    if (terminal && terminalGone()) {
      // Writing to a closed terminal fails. SIGHUP may arrive twice: from the kernel and from the shell.
      output.shown = false
      return stop()
    }
    // It logs its failure itself.
    reloads?.request().catch(() => {})
  })

  // Not earlier: a signal without a listener would end the process.
  for (const signal of SIGNALS) process.off(signal, early)
  if (signals > 0) {
    signals = 0
    return end()
  }
  await pool.start()
  await telemetry.start({ runtimeDir: process.env.XDG_RUNTIME_DIR })
  announce(pool, start, log, terminal)
  service.ready()
  // Collects the garbage of the start: V8 gives memory back 8 s after a collection, here about 8 MB.
  collector()('major')
  const { TERM } = process.env
  if (
    !dashboard ||
    !terminal ||
    TERM === 'dumb' ||
    !process.stdin.isTTY ||
    telemetry.socket === null ||
    signals > 0
  )
    return
  view = new TerminalView(
    telemetry.socket,
    { ...env, HALLEY_GENERATED_KEY: generatedKey },
    ({ stop: requested, fault }) => {
      telemetry.hold(false)
      if (terminalGone()) return
      if (fault !== '') log.error(`the dashboard failed: ${fault}; the gateway keeps running`)
      else if (!requested && signals === 0)
        log.info({ url: pool.url }, 'dashboard closed; the gateway keeps running')
      if (requested) stop()
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
