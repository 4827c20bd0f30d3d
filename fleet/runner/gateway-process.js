import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { freePort, SupervisedProcess } from './processes.js'
import { RunError } from './target.js'

/** @typedef {import('../scenarios/contract.js').GatewayPlan} GatewayPlan */

const HALLEY = fileURLToPath(new URL('../../bin/halley.js', import.meta.url))
/** Those of `npm start`; reasons in docs/gc.md. */
const NODE_FLAGS = Object.freeze(['--expose-gc', '--max-semi-space-size=2'])
/** ms for a gateway to start, and to end with many connections. */
const START_TIMEOUT = 60_000
const STOP_TIMEOUT = 30_000
const PAUSE = 100
const TRIES = 3
/** A log line from level `warn` on, or a line that is no JSON. */
const WARNING = /^[^{]|"level":(?:[456]0|"(?:warn|error|fatal)")/

/**
 * The gateway of a run: `halley serve` on a free loopback port. Its configuration, log and CSV file are in the run's
 * folder.
 */
export class GatewayProcess {
  url = ''
  apiKey = randomBytes(16).toString('hex')
  #process
  #folder
  #socket
  /** @type {import('node:net').Socket | null} */
  #watch = null
  /** Of the running workers. @type {number[]} */
  workerPids = []

  /** @param {SupervisedProcess} child @param {string} folder for its socket */
  constructor(child, folder) {
    this.#process = child
    this.#folder = folder
    this.#socket = join(folder, 's')
  }

  /**
   * @param {object} options @param {GatewayPlan} options.plan
   * @param {string} options.out folder
   * @param {string} [options.redis] address of the Redis that is its engine
   * @returns {Promise<GatewayProcess>} that answers
   * @throws {RunError} with what its log says
   */
  static async start({ plan, out, redis }) {
    for (let attempt = 1; ; attempt++) {
      const folder = await mkdtemp(join(tmpdir(), 'halley-run-'))
      const port = await freePort()
      const apiKey = randomBytes(16).toString('hex')
      const config = configOf({ plan, out, redis, port, apiKey, socket: join(folder, 's') })
      const file = join(out, 'gateway.json')
      await writeFile(file, `${JSON.stringify(config, null, 2)}\n`, { mode: 0o600 })
      const child = new SupervisedProcess({
        log: join(out, 'gateway.log'),
        command: process.execPath,
        args: [...(plan.nodeFlags ?? NODE_FLAGS), HALLEY, 'serve', '-c', file, '--no-dashboard'],
        stopTimeout: STOP_TIMEOUT,
      })
      const gateway = new GatewayProcess(child, folder)
      gateway.url = `http://127.0.0.1:${port}`
      gateway.apiKey = apiKey
      try {
        await gateway.#comeUp()
        return gateway
      } catch (error) {
        await gateway.stop()
        // Another process took the port in between.
        if (attempt >= TRIES || !/EADDRINUSE|in use/.test(error.message)) throw error
      }
    }
  }

  async #comeUp() {
    await this.#process.started
    const end = Date.now() + START_TIMEOUT
    while (!(await this.#isHealthy()) || !(await this.#follow())) {
      if (this.#process.hasEnded || Date.now() > end) {
        const last = (await this.#process.lastLines()).map(messageOf).slice(-2).join('; ')
        throw new RunError(`the gateway did not start: ${last || 'its log is empty'}`)
      }
      await new Promise(resolve => setTimeout(resolve, PAUSE))
    }
  }

  /** @returns {Promise<boolean>} whether a worker answers */
  async #isHealthy() {
    const answer = await fetch(`${this.url}/health`, { signal: AbortSignal.timeout(5000) }).catch(() => null)
    await answer?.body?.cancel()
    return answer?.ok ?? false
  }

  /**
   * Reads the workers' process ids from the stats socket, which the primary opens after workers already answer.
   * @returns {Promise<boolean>} whether they are known; false: the connection ended before
   */
  #follow() {
    return new Promise(resolve => {
      const socket = connect(this.#socket)
      this.#watch = socket
      const lines = createInterface({ input: socket })
      // The readline interface re-emits the errors of its input.
      for (const emitter of [socket, lines]) emitter.on('error', () => {})
      socket.once('close', () => resolve(false))
      lines.on('line', line => {
        const message = parse(line)
        const snapshot = message?.type === 'snapshot' ? message.snapshot : message?.history?.at(-1)
        if (!snapshot) return
        this.workerPids = snapshot.workers
          .map((/** @type {any} */ { sample }) => sample?.pid ?? 0)
          .filter((/** @type {number} */ pid) => pid > 0)
        resolve(true)
      })
    })
  }

  get pid() {
    return this.#process.pid
  }

  /** Resolves when it has ended for any reason. */
  get ended() {
    return this.#process.ended
  }

  /**
   * Kills a worker, as a crash would.
   * @param {number} index of the worker, modulo their number @returns {number} its process id; 0: none
   */
  killWorker(index) {
    const pid = this.workerPids[index % Math.max(1, this.workerPids.length)] ?? 0
    if (pid === 0) return 0
    try {
      process.kill(pid, 'SIGKILL')
      return pid
    } catch {
      return 0
    }
  }

  /** @returns {Promise<string>} its last warning; '': none */
  async lastWarning() {
    const warnings = (await this.#process.lastLines()).filter(line => WARNING.test(line))
    return warnings.map(messageOf).at(-1) ?? ''
  }

  /** @returns {Promise<void>} when it has ended */
  async stop() {
    this.#watch?.destroy()
    await this.#process.stop()
    await rm(this.#folder, { recursive: true, force: true })
  }
}

/**
 * @param {{plan: GatewayPlan, out: string, redis?: string, port: number, apiKey: string, socket: string}} options
 * @returns {any} a configuration file
 */
function configOf({ plan, out, redis, port, apiKey, socket }) {
  return {
    ...plan.config,
    workers: plan.workers,
    http_server: { .../** @type {any} */ (plan.config).http_server, address: '127.0.0.1', port },
    http_api: { key: apiKey },
    health: { enabled: true },
    stats: { socket, csv: { file: join(out, 'gateway.csv') } },
    ...(redis === undefined ? {} : { engine: { type: 'redis', redis: { address: redis } } }),
  }
}

/** @param {string} line of the log @returns {string} its message */
const messageOf = line => String(parse(line)?.msg ?? line)

/** @param {string} line @returns {any} null: incomplete, because the gateway was killed while it wrote */
function parse(line) {
  try {
    return JSON.parse(line)
  } catch {
    return null
  }
}
