import { randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { replaceFile } from '../files.js'
import { commandOf, cpuOfProcess, processTree, signal } from './proc.js'
import { isHealthy, messageOf, ServerProcess, startServer } from './processes.js'
import { RunError } from './target.js'

/** @import { Disturbance, GatewayPlan } from '../scenarios/contract.js' */
/** @import { Snapshot } from '../../src/metrics/schema.js' */

/** @typedef {{at: number, snapshot: Snapshot}} Arrival `at`: performance.now() */
/** @typedef {{code: number | null, signal: string | null}} End */

/** API key of all gateways of this process: publishers use one key for all nodes. */
const API_KEY = randomBytes(16).toString('hex')
const HALLEY = fileURLToPath(new URL('../../bin/halley.js', import.meta.url))
/** As in `npm start`; see docs/gc.md. */
const NODE_FLAGS = Object.freeze(['--expose-gc', '--max-semi-space-size=2'])
/** Timeouts of a restart, and of an exit with many connections, ms. */
const START_TIMEOUT = 60_000
const STOP_TIMEOUT = 30_000
const PAUSE = 100
/** ms until a stopped worker continues if the primary does not replace it. */
const FROZEN = 15_000
/** Timeout for a running worker to signal, ms. */
const WORKER_TIMEOUT = 10_000
const REPLACE_TIMEOUT = 60_000
const SNAPSHOT_MS = 120_000
/** Log message at the start of a rolling restart, and all messages that change this state. */
const RESTART_BEGINS = 'rolling restart started'
const RESTART_STATE = /^(?:rolling restart |halley is listening$)/
/** A log line of level `warn` or above, or not JSON. */
const WARNING = /^[^{]|"level":(?:[456]0|"(?:warn|error|fatal)")/

/** `halley serve` on a free loopback port. Its configuration, log and CSV file are in the run's folder. */
export class GatewayProcess extends ServerProcess {
  file
  socket
  #folder
  /** During `restart`: the process may exit. */
  #isExpected = false
  /** @type {(how: End) => void} */
  #onLost = () => {}
  /** Resolves after an unexpected end. @type {Promise<End>} */
  lost = new Promise(resolve => {
    this.#onLost = resolve
  })
  /** Process id of a stopped worker; 0: none. */
  #frozen = 0
  /** @type {Set<(arrival: Arrival) => void>} */
  #listeners = new Set()
  /** @type {import('node:net').Socket | null} */
  #watch = null
  /** Process ids of the running workers. @type {number[]} */
  workerPids = []
  /** In the last snapshot: all workers are up, and none is being replaced. */
  #areUp = false

  /**
   * @param {ConstructorParameters<typeof ServerProcess>[0] & {folder: string, file: string, hasMemoryEngine: boolean}}
   *   options `folder`: for its socket; `file`: its configuration
   */
  constructor({ folder, file, hasMemoryEngine, ...options }) {
    super(options)
    this.hasMemoryEngine = hasMemoryEngine
    this.#folder = folder
    this.file = file
    this.socket = join(folder, 's')
    this.#observe()
  }

  #observe() {
    this.process.ended.then(how => {
      if (!this.#isExpected && !how.requested) this.#onLost(how)
    })
  }

  /**
   * Starts a gateway, waits until it is ready.
   * @param {{plan: GatewayPlan, out: string, name?: string, redis?: object}} options `out`: folder; `name`: of its files;
   *   `redis`: `engine.redis`, none: the memory engine
   * @throws {RunError} with its last log lines
   */
  static start({ plan, out, name = 'gateway', redis }) {
    return startServer(async port => {
      const apiKey = API_KEY
      const folder = await mkdtemp(join(tmpdir(), 'halley-run-'))
      const csv = join(out, `${name}.csv`)
      const file = join(out, `${name}.json`)
      const config = configOf({ plan, csv, redis, port, apiKey, folder })
      await writeFile(file, `${JSON.stringify(config, null, 2)}\n`, { mode: 0o600 })
      return new GatewayProcess({
        name: 'gateway',
        port,
        apiKey,
        folder,
        file,
        hasMemoryEngine: redis === undefined,
        log: join(out, `${name}.log`),
        command: {
          command: process.execPath,
          args: [...(plan.nodeFlags ?? NODE_FLAGS), HALLEY, 'serve', '-c', file, '--no-dashboard'],
        },
        secure: config.http_server.tls?.enabled === true,
        // The stats socket opens when all workers listen. It is the only check of a gateway with TLS.
        isReady: async gateway =>
          (gateway.url.startsWith('https:') || (await isHealthy(gateway))) && (await gateway.#follow()),
      })
    })
  }

  /** @returns {Promise<boolean>} whether the stats socket has sent a snapshot before it closed */
  #follow() {
    return new Promise(resolve => {
      const socket = connect(this.socket)
      this.#watch = socket
      const lines = createInterface({ input: socket })
      // The readline interface re-emits the errors of its input.
      for (const emitter of [socket, lines]) emitter.on('error', () => {})
      socket.once('close', () => resolve(false))
      lines.on('line', line => {
        const message = parse(line)
        const snapshot = message?.type === 'snapshot' ? message.snapshot : message?.history?.at(-1)
        if (!snapshot) return
        for (const listener of this.#listeners) listener({ at: performance.now(), snapshot })
        this.#areUp = snapshot.workers.every(
          (/** @type {any} */ { state, draining }) => state === 'up' && draining === 0,
        )
        this.workerPids = snapshot.workers
          .map((/** @type {any} */ { sample }) => sample?.pid ?? 0)
          .filter((/** @type {number} */ pid) => pid > 0)
        resolve(true)
      })
    })
  }

  /**
   * The next matching snapshot.
   * @param {(snapshot: Snapshot) => boolean} [matches]
   * @returns {Promise<Arrival>}
   * @throws {RunError} when none has matched for `SNAPSHOT_MS`
   */
  next(matches = () => true) {
    return new Promise((resolve, reject) => {
      const listener = (/** @type {Arrival} */ arrival) => {
        if (!matches(arrival.snapshot)) return
        end()
        resolve(arrival)
      }
      const timer = setTimeout(() => {
        end()
        reject(new RunError(`the gateway sent no expected snapshot within ${SNAPSHOT_MS / 1000} s`))
      }, SNAPSHOT_MS).unref()
      const end = () => {
        clearTimeout(timer)
        this.#listeners.delete(listener)
      }
      this.#listeners.add(listener)
    })
  }

  cpuParts() {
    const parts = { primary: 0, workers: 0, queues: 0 }
    for (const pid of processTree(this.pid)) {
      const [, role] = /\/(worker|queues)\/main\.js/.exec(commandOf(pid)) ?? []
      parts[role === 'worker' ? 'workers' : role === 'queues' ? role : 'primary'] += cpuOfProcess(pid)
    }
    return parts
  }

  /**
   * @param {Disturbance['kind']} kind @param {number} index of the worker, modulo their number
   * @param {number} kept subscriptions with history in the primary's memory
   * @returns {Promise<{text: string, forgotten?: number}>} description; subscriptions whose history was destroyed
   */
  async disturb(kind, index, kept) {
    switch (kind) {
      case 'kill-worker':
        return { text: `worker ${await this.#signalWorker(index, 'SIGKILL')} killed with SIGKILL` }
      case 'freeze-worker': {
        const { pid, lasted, isReplaced } = await this.freezeWorker(index)
        const end = isReplaced ? 'replaced by the gateway' : 'continued with SIGCONT'
        return { text: `worker ${pid} stopped with SIGSTOP, ${end} after ${seconds(lasted)}` }
      }
      case 'restart-workers':
        return {
          text: `rolling restart of all workers in ${seconds(await this.restartWorkers())}`,
        }
      case 'reload':
        return {
          text: `reload of a key that requires new workers, in ${seconds(await this.reload())}`,
        }
      case 'restart-gateway': {
        const { code, away } = await this.restart('SIGTERM')
        if (code !== 0) throw new Error(`the gateway exited with status ${code}`)
        const from = kept > 0 ? ' from its snapshot' : ''
        return { text: `gateway stopped with SIGTERM and restarted${from}, unavailable for ${seconds(away)}` }
      }
      case 'kill-gateway': {
        const { away } = await this.restart('SIGKILL')
        const text = `gateway killed with SIGKILL and restarted, unavailable for ${seconds(away)}`
        return kept > 0 ? { text: `${text}, history lost`, forgotten: kept } : { text }
      }
      default:
        throw new Error(`unknown disturbance ${kind}`)
    }
  }

  /**
   * Stops a worker with SIGSTOP until the primary kills it, at most `ms`; `lasted`: s.
   * @param {number} index of the worker, modulo their number @param {number} [ms]
   */
  async freezeWorker(index, ms = FROZEN) {
    const pid = await this.#signalWorker(index, 'SIGSTOP')
    const began = Date.now()
    this.#frozen = pid
    while (isRunning(pid) && Date.now() - began < ms) await sleep(Math.min(PAUSE, ms))
    const isReplaced = !isRunning(pid)
    this.#thaw()
    return { pid, lasted: (Date.now() - began) / 1000, isReplaced }
  }

  #thaw() {
    if (this.#frozen > 0) signal(this.#frozen, 'SIGCONT')
    this.#frozen = 0
  }

  /**
   * Replaces all workers: SIGUSR2, or SIGHUP after a change of a key that needs new workers.
   * @param {'SIGUSR2' | 'SIGHUP'} name @returns {Promise<number>} s until the last old worker has exited
   */
  async #replaceWorkers(name) {
    await this.#noneReplaced()
    const old = this.workerPids
    const began = Date.now()
    signal(this.pid, name)
    while (old.some(isRunning)) {
      if (Date.now() - began > REPLACE_TIMEOUT) throw new Error(`workers were not replaced after ${name}`)
      await sleep(PAUSE)
    }
    return (Date.now() - began) / 1000
  }

  /** Waits until no worker is being replaced: during a rolling restart the primary ignores SIGUSR2. */
  async #noneReplaced() {
    const began = Date.now()
    // The log first: after a rolling restart, the last snapshot may still list exited workers.
    while ((await this.#isRestarting()) || !this.#areUp || !this.workerPids.every(isRunning)) {
      if (Date.now() - began > REPLACE_TIMEOUT) throw new Error('not all workers are up')
      await sleep(PAUSE)
    }
  }

  async #isRestarting() {
    const last = (await this.process.lastLines()).map(messageOf).findLast(text => RESTART_STATE.test(text))
    return last === RESTART_BEGINS
  }

  /** A rolling restart. @returns {Promise<number>} s */
  restartWorkers() {
    return this.#replaceWorkers('SIGUSR2')
  }

  /** Reloads a changed key that needs new workers. @returns {Promise<number>} s */
  async reload() {
    const config = JSON.parse(await readFile(this.file, 'utf8'))
    const { message_size_limit = 65_536 } = config.websocket ?? {}
    config.websocket = { ...config.websocket, message_size_limit: message_size_limit + 1 }
    await replaceFile(this.file, `${JSON.stringify(config, null, 2)}\n`, { mode: 0o600 })
    return await this.#replaceWorkers('SIGHUP')
  }

  /** @param {number} index @param {NodeJS.Signals} name @returns {Promise<number>} */
  async #signalWorker(index, name) {
    // The list is a second old: the worker may be gone.
    for (const end = Date.now() + WORKER_TIMEOUT; Date.now() < end; await sleep(PAUSE)) {
      const pid = this.workerPids[index % Math.max(1, this.workerPids.length)] ?? 0
      if (pid > 0 && signal(pid, name)) return pid
    }
    throw new Error('no worker is running')
  }

  /**
   * Ends the primary and restarts the gateway, with the same configuration and port.
   * @param {'SIGKILL' | 'SIGTERM'} name a crash; a clean exit
   * @returns {Promise<{code: number | null, away: number}>} old exit status; s until the new process is ready
   */
  async restart(name) {
    const old = this.process
    const began = Date.now()
    this.#isExpected = true
    this.#watch?.destroy()
    try {
      signal(old.pid, name)
      const late = sleep(STOP_TIMEOUT, null, { ref: false })
      const end = await Promise.race([old.ended, late])
      if (end === null) throw new RunError('the gateway did not exit')
      await this.#startAgain(began + START_TIMEOUT)
      this.#isExpected = false
      return { code: end.code, away: (Date.now() - began) / 1000 }
    } catch (error) {
      this.#onLost({ code: null, signal: null })
      throw error
    }
  }

  /** @param {number} until Unix ms */
  async #startAgain(until) {
    for (;;) {
      this.process = this.spawn()
      this.#observe()
      try {
        return await this.comeUp()
      } catch (error) {
        await this.process.stop()
        // Workers of a killed primary hold the port for a moment.
        if (Date.now() > until || !/EADDRINUSE|in use/.test(error.message)) throw error
        await sleep(PAUSE)
      }
    }
  }

  /** @returns {Promise<string>} its last warning; '': none */
  async lastWarning() {
    const warnings = (await this.process.lastLines()).filter(line => WARNING.test(line))
    return warnings.map(messageOf).at(-1) ?? ''
  }

  /** @override @returns {Promise<void>} after its exit */
  async stop() {
    this.#thaw()
    this.#watch?.destroy()
    await super.stop()
    await rm(this.#folder, { recursive: true, force: true })
  }
}

/** @param {number} value s */
const seconds = value => `${value.toFixed(1)} s`

/** @param {number} pid */
const isRunning = pid => signal(pid, 0)

/** @param {{plan: GatewayPlan, csv: string, redis?: object, port: number, apiKey: string, folder: string}} options */
function configOf({ plan, csv, redis, port, apiKey, folder }) {
  const { http_server, stats, ...config } = /** @type {any} */ (plan.config)
  const memory = plan.snapshot ? { memory: { snapshot_file: join(folder, 'snapshot') } } : {}
  return {
    // Local drones share the cores: the run measures the load, not admission control.
    overload: { max_tick: '0s' },
    health: { enabled: true },
    ...config,
    workers: plan.workers,
    http_server: { ...http_server, address: '127.0.0.1', port },
    http_api: { key: apiKey },
    stats: { ...stats, socket: join(folder, 's'), csv: { file: csv } },
    engine: redis === undefined ? { type: 'memory', ...memory } : { type: 'redis', redis },
  }
}

/** @param {string} line @returns {any} null: incomplete, the gateway was killed while writing */
function parse(line) {
  try {
    return JSON.parse(line)
  } catch {
    return null
  }
}
