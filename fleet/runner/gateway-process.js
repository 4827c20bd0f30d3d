import { randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { replaceFile } from '../files.js'
import { isHealthy, messageOf, ServerProcess, startServer } from './processes.js'
import { RunError } from './target.js'

/** @typedef {import('../scenarios/contract.js').GatewayPlan} GatewayPlan */

/** Of all gateways that this process starts: publishers have one key for all nodes. */
const API_KEY = randomBytes(16).toString('hex')
const HALLEY = fileURLToPath(new URL('../../bin/halley.js', import.meta.url))
/** Those of `npm start`; reasons in docs/gc.md. */
const NODE_FLAGS = Object.freeze(['--expose-gc', '--max-semi-space-size=2'])
/** ms for a gateway to start again, and to end with many connections. */
const START_TIMEOUT = 60_000
const STOP_TIMEOUT = 30_000
const PAUSE = 100
/** ms for the primary to replace a worker that stands still; then it goes on. */
const FROZEN = 15_000
/** ms for a worker to listen after another one was killed. */
const WORKER_TIMEOUT = 10_000
/** ms for all workers to be replaced. */
const REPLACE_TIMEOUT = 60_000
/** The log message of a rolling restart that begins, and those after which none is under way. */
const RESTART_BEGINS = 'rolling restart begins'
const RESTART_STATE = /^(?:rolling restart (?:begins|ended)|halley listens$)/
/** A log line from level `warn` on, or a line that is no JSON. */
const WARNING = /^[^{]|"level":(?:[456]0|"(?:warn|error|fatal)")/

/**
 * The gateway of a run: `halley serve` on a free loopback port. Its configuration, log and CSV file are in the run's
 * folder.
 */
export class GatewayProcess extends ServerProcess {
  /** Path of its configuration file. */
  file
  /** Path of its stats socket. */
  socket
  #folder
  /** `restart` is under way: a process may end. */
  #isExpected = false
  /** @type {(how: {code: number | null, signal: string | null}) => void} */
  #onLost = () => {}
  /** Resolves after an unexpected end. @type {Promise<{code: number | null, signal: string | null}>} */
  lost = new Promise(resolve => {
    this.#onLost = resolve
  })
  /** Process id of a worker that stands still; 0: none. */
  #frozen = 0
  /** @type {import('node:net').Socket | null} */
  #watch = null
  /** Of the running workers. @type {number[]} */
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
      if (!this.#isExpected && !how.asked) this.#onLost(how)
    })
  }

  /**
   * @param {object} options @param {GatewayPlan} options.plan
   * @param {string} options.out folder
   * @param {string} [options.name] of its files in the folder
   * @param {object} [options.redis] `engine.redis`; none: the memory engine
   * @param {(gateway: GatewayProcess) => Promise<boolean>} [options.isReady] whether its workers answer; default:
   *   `/health` does
   * @returns {Promise<GatewayProcess>} that answers
   * @throws {RunError} with what its log says
   */
  static start({ plan, out, name = 'gateway', redis, isReady = isHealthy }) {
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
        isReady: async gateway => (await isReady(gateway)) && (await gateway.#follow()),
      })
    })
  }

  /**
   * Reads the workers' process ids from the stats socket, which the primary opens after workers already answer.
   * @returns {Promise<boolean>} whether they are known; false: the connection ended before
   */
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
   * Kills a worker, as a crash would.
   * @param {number} index of the worker, modulo their number @returns {Promise<number>} its process id
   * @throws {Error} there is none
   */
  killWorker(index) {
    return this.#signalWorker(index, 'SIGKILL')
  }

  /**
   * Makes a worker stand still, as a machine that swaps would, until the primary has killed it, or for a while.
   * @param {number} index as for killWorker
   * @returns {Promise<{pid: number, lasted: number, isReplaced: boolean}>} `lasted`: s; `isReplaced`: the primary has
   *   killed it
   * @throws {Error} there is none
   */
  async freezeWorker(index) {
    const pid = await this.#signalWorker(index, 'SIGSTOP')
    const began = Date.now()
    this.#frozen = pid
    while (isRunning(pid) && Date.now() - began < FROZEN) await sleep(PAUSE)
    const isReplaced = !isRunning(pid)
    this.#thaw()
    return { pid, lasted: (Date.now() - began) / 1000, isReplaced }
  }

  #thaw() {
    if (this.#frozen > 0) signal(this.#frozen, 'SIGCONT')
    this.#frozen = 0
  }

  /**
   * Has all workers replaced: SIGUSR2, or SIGHUP after a change of a key that takes new workers.
   * @param {'SIGUSR2' | 'SIGHUP'} name @returns {Promise<number>} s until the last of the old ones has ended
   * @throws {Error} some go on, or another replacement does not end
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

  /**
   * Waits until all workers are up and none is being replaced. During a rolling restart the primary ignores SIGUSR2.
   * @returns {Promise<void>} when `workerPids` are those of all running workers
   * @throws {Error} it takes too long
   */
  async #noneReplaced() {
    const began = Date.now()
    // The log first: after the end of a rolling restart, the last snapshot may still have workers that have ended.
    while ((await this.#isRestarting()) || !this.#areUp || !this.workerPids.every(isRunning)) {
      if (Date.now() - began > REPLACE_TIMEOUT) throw new Error('not all workers are up')
      await sleep(PAUSE)
    }
  }

  /** @returns {Promise<boolean>} whether a rolling restart has begun, by the log, and has not ended */
  async #isRestarting() {
    const last = (await this.process.lastLines()).map(messageOf).findLast(text => RESTART_STATE.test(text))
    return last === RESTART_BEGINS
  }

  /** A rolling restart. @returns {Promise<number>} s */
  restartWorkers() {
    return this.#replaceWorkers('SIGUSR2')
  }

  /** A reload of a changed key that takes new workers. @returns {Promise<number>} s */
  async reload() {
    const config = JSON.parse(await readFile(this.file, 'utf8'))
    const { message_size_limit = 65_536 } = config.websocket ?? {}
    config.websocket = { ...config.websocket, message_size_limit: message_size_limit + 1 }
    await replaceFile(this.file, `${JSON.stringify(config, null, 2)}\n`, { mode: 0o600 })
    return await this.#replaceWorkers('SIGHUP')
  }

  /** @param {number} index @param {NodeJS.Signals} name @returns {Promise<number>} */
  async #signalWorker(index, name) {
    // The list is a second old: the worker may have ended.
    for (const end = Date.now() + WORKER_TIMEOUT; Date.now() < end; await sleep(PAUSE)) {
      const pid = this.workerPids[index % Math.max(1, this.workerPids.length)] ?? 0
      if (pid > 0 && signal(pid, name)) return pid
    }
    throw new Error('there is no worker')
  }

  /**
   * Ends the primary and starts the gateway again, with the same configuration and port.
   * @param {'SIGKILL' | 'SIGTERM'} name SIGKILL: as a crash would; SIGTERM: a clean end
   * @returns {Promise<{code: number | null, away: number}>} exit status of the old one; s until the new one answers
   * @throws {RunError} it does not start, or did not end
   */
  async restart(name) {
    const old = this.process
    const began = Date.now()
    this.#isExpected = true
    this.#watch?.destroy()
    try {
      signal(old.pid, name)
      const { code } = await inTime(old.ended, STOP_TIMEOUT, 'the gateway did not end')
      await this.#startAgain(began + START_TIMEOUT)
      this.#isExpected = false
      return { code, away: (Date.now() - began) / 1000 }
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

  /** @override @returns {Promise<void>} when it has ended */
  async stop() {
    this.#thaw()
    this.#watch?.destroy()
    await super.stop()
    await rm(this.#folder, { recursive: true, force: true })
  }
}

/** @param {number} pid @param {NodeJS.Signals | 0} name @returns {boolean} false: there is no such process */
function signal(pid, name) {
  try {
    return process.kill(pid, name)
  } catch {
    return false
  }
}

/** @param {number} pid */
const isRunning = pid => signal(pid, 0)

/**
 * @template T @param {Promise<T>} work @param {number} ms @param {string} fault
 * @returns {Promise<T>} @throws {RunError} it took longer
 */
async function inTime(work, ms, fault) {
  const abort = new AbortController()
  const late = sleep(ms, undefined, { signal: abort.signal }).then(() => Promise.reject(new RunError(fault)))
  late.catch(() => {})
  try {
    return await Promise.race([work, late])
  } finally {
    abort.abort()
  }
}

/**
 * @param {{plan: GatewayPlan, csv: string, redis?: object, port: number, apiKey: string, folder: string}} options
 * @returns {any} a configuration file
 */
function configOf({ plan, csv, redis, port, apiKey, folder }) {
  const { http_server, stats, ...config } = /** @type {any} */ (plan.config)
  const memory = plan.snapshot ? { memory: { snapshot_file: join(folder, 'snapshot') } } : {}
  return {
    // Local drones share the processors: the run measures what the gateway does, not whom it refuses.
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

/** @param {string} line @returns {any} null: incomplete, because the gateway was killed while it wrote */
function parse(line) {
  try {
    return JSON.parse(line)
  } catch {
    return null
  }
}
