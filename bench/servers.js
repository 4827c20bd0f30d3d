import { spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { UsageError } from './flags.js'
import { NCHAN_PUBLISH } from './peers/nchan.js'
import { openFilesLimit, processTree } from './proc.js'
import { medians, table } from './report.js'
import { Watcher } from './watcher.js'

/**
 * @typedef {'halley' | 'uws' | 'ws' | import('./peers/index.js').PeerKind} ServerKind
 * @typedef {object} Command
 * @property {string} program
 * @property {string[]} args
 * @typedef {object} Api where to publish
 * @property {string} url
 * @property {string} key
 * @typedef {object} ServerOptions of Halley, except for `env`; controls are one process each with WebSocket clients
 * @property {Record<string, string | undefined>} env
 * @property {number} workers
 * @property {string} [driver] default auto
 * @property {string} [transport] of clients, one of TRANSPORTS; default websocket
 * @property {object | null} [redis] `engine.redis`; default null: the embedded engine
 * @property {number} [history] publications of each channel kept for recovery; default 0
 * @property {number} [subscriptions] minimum limit of a client; default 1
 * @property {string[] | null} [flags] of Node.js, instead of those of `npm start`
 * @property {Record<string, any>} [config] blocks that extend or override those of a run
 */

const HOST = '127.0.0.1'
const API_KEY = 'key'

/** Transports of clients of other servers than Halley: see engine.js. @type {Record<string, string>} */
const TRANSPORTS = {
  uws: 'uni_bare',
  ws: 'uni_bare',
  nchan: 'uni_bare',
  'socket.io': 'uni_socket_io',
  centrifuge: 'websocket',
}

const ROOT = fileURLToPath(new URL('..', import.meta.url))
/** Open files of a process itself: code, pipes, the publishers' connections. */
const OWN_FILES = 500
/** ms for a server to start on a busy machine; an early end is noticed at once. */
const START_PATIENCE = 120_000
const STOP_PATIENCE = 15_000
/** Halley's defaults. */
const CHANNEL_LIMIT = 128
const RECOVERY_LIMIT = 300

/** @param {ServerKind} kind @param {number} workers @returns {number} maximum connections on this machine */
export const capacityOf = (kind, workers) =>
  (openFilesLimit() - OWN_FILES) * (kind === 'halley' || kind === 'nchan' ? Math.max(1, workers) : 1)

/** @param {number} conns clients of Halley @param {number} workers @throws {UsageError} too many for this machine */
export function checkCapacity(conns, workers) {
  if (conns > capacityOf('halley', workers))
    throw new UsageError(`the limit of open files leaves ${workers} workers no room for ${conns} clients`)
}

/** @returns {Promise<number>} */
function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, HOST, () => {
      const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
      server.close(() => resolve(port))
    })
  })
}

/** A server in its own process, on a free port. */
export class Server {
  #folder
  #transport
  #command
  #env
  /** @type {import('node:child_process').ChildProcess} */
  #process = /** @type {any} */ (null)
  /** @type {Promise<unknown>} */
  #exited = Promise.resolve()

  /**
   * Starts one; `answers` resolves when it is ready.
   * @param {ServerKind} kind @param {ServerOptions} options @returns {Promise<Server>}
   */
  static async spawn(kind, options) {
    const port = await freePort()
    const folder = await mkdtemp(join(tmpdir(), 'halley-bench-'))
    const command = await commandOf(kind, folder, port, options)
    return new Server(kind, port, folder, command, options)
  }

  /**
   * @param {ServerKind} kind @param {number} port @param {string} folder for its log
   * @param {Command} command @param {ServerOptions} options
   */
  constructor(kind, port, folder, command, { env, transport = 'websocket' }) {
    this.#transport = transport
    this.kind = kind
    this.port = port
    this.#folder = folder
    this.#command = command
    // HALLEY_... variables would override the file, and the run would differ from its printed configuration.
    this.#env = Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('HALLEY_')))
    this.#start()
  }

  #start() {
    const log = openSync(join(this.#folder, 'log'), 'a')
    this.#process = spawn(this.#command.program, this.#command.args, {
      cwd: ROOT,
      env: this.#env,
      stdio: ['ignore', log, log],
    })
    closeSync(log)
    this.#exited = new Promise(resolve => this.#process.once('exit', resolve))
  }

  /** SIGTERM, and a new start on the same port with the same configuration. Resolves when it answers. */
  async restart() {
    this.#process.kill('SIGTERM')
    await this.#exited
    this.#start()
    await this.answers()
  }

  /** @returns {number} */
  get pid() {
    return /** @type {number} */ (this.#process.pid)
  }

  /** Halley's configuration file. */
  get configFile() {
    return join(this.#folder, 'config.json')
  }

  get url() {
    return `http://${HOST}:${this.port}`
  }

  /** @returns {import('./load.js').Target} of its clients */
  get target() {
    return { url: this.url, transport: TRANSPORTS[this.kind] ?? this.#transport }
  }

  /** @returns {Api} of its publishers */
  get api() {
    return { url: this.kind === 'nchan' ? `${this.url}${NCHAN_PUBLISH}` : this.url, key: API_KEY }
  }

  /** @returns {import('./load.js').Endpoints} */
  get endpoints() {
    return { targets: [this.target], apis: [this.api] }
  }

  /**
   * @param {(server: Server) => Promise<boolean>} [ready] whether it answers; without it, `/health` of plain HTTP says so
   * @returns {Promise<void>} when it answers @throws {Error} with its last log lines
   */
  async answers(ready = isHealthy) {
    const patience = Date.now() + START_PATIENCE
    while (Date.now() < patience) {
      if (!this.runs) throw new Error(`${this.kind} ended at once: ${this.#logTail()}`)
      if (await ready(this)) return
      await sleep(50)
    }
    throw new Error(`${this.kind} does not answer: ${this.#logTail()}`)
  }

  #logTail() {
    return readFileSync(join(this.#folder, 'log'), 'utf8').trim().split('\n').slice(-3).join('\n')
  }

  get runs() {
    return this.#process.exitCode === null && this.#process.signalCode === null
  }

  /** SIGKILL for all its processes. Resolves when it has ended. */
  async kill() {
    for (const pid of processTree(this.pid)) {
      try {
        process.kill(pid, 'SIGKILL')
      } catch {
        // A worker that ended with its primary.
      }
    }
    await this.#exited
    await this.stop()
  }

  /** Ends it, by force if necessary. */
  async stop() {
    if (this.runs) {
      this.#process.kill('SIGTERM')
      const force = setTimeout(() => this.#process.kill('SIGKILL'), STOP_PATIENCE)
      await this.#exited
      clearTimeout(force)
    }
    await rm(this.#folder, { recursive: true, force: true })
  }
}

/** @param {Server} server @returns {Promise<boolean>} */
async function isHealthy({ port }) {
  const answer = await fetch(`http://${HOST}:${port}/health`).catch(() => null)
  await answer?.arrayBuffer()
  return answer?.ok ?? false
}

/** A program against servers of its own. @template O its options */
export class ServerRun {
  /** Each ends something that was started. @type {(() => unknown)[]} */
  ends = []

  /** @param {O} options @param {import('./bench.js').Io} io */
  constructor(options, io) {
    this.options = options
    this.io = io
  }

  /**
   * @param {Omit<ServerOptions, 'env'>} options @param {(server: Server) => Promise<boolean>} [ready] as `answers`
   * @returns {Promise<Server>} a Halley that answers
   */
  async spawn(options, ready) {
    const server = await Server.spawn('halley', { ...options, env: this.io.env })
    this.ends.push(() => server.stop())
    await server.answers(ready)
    return server
  }

  /** @param {Omit<ServerOptions, 'env'>} options @returns {Promise<{server: Server, watcher: Watcher}>} as `spawn` */
  async spawnWatched(options) {
    const socket = join(tmpdir(), `halley-bench-${process.pid}.sock`)
    const server = await this.spawn({ ...options, config: { ...options.config, stats: { socket } } })
    const watcher = new Watcher(socket)
    this.ends.push(() => watcher.end())
    return { server, watcher }
  }

  /** @returns {Promise<string>} a new folder, removed by `stop` */
  async folder() {
    const folder = await mkdtemp(join(tmpdir(), 'halley-bench-'))
    this.ends.push(() => rm(folder, { recursive: true, force: true }))
    return folder
  }

  /** Ends everything that was started, the last first. */
  async stop() {
    for (const end of this.ends.splice(0).reverse()) await end()
  }
}

/**
 * A program that measures variants in turn. @template {{runs: number, json: boolean}} O its options
 * @extends {ServerRun<O>}
 */
export class VariantsRun extends ServerRun {
  /**
   * Prints a line of JSON for each run, or a table of medians. After each run everything is ended that it has started.
   * @template V
   * @param {{scenario: string, [field: string]: string}} labels
   * @param {Record<string, V>} variants
   * @param {(variant: V) => Promise<Record<string, number>>} measure
   * @returns {Promise<Record<string, Record<string, number>>>} medians of each variant
   */
  async compare(labels, variants, measure) {
    const { runs, json } = this.options
    /** @type {Record<string, Record<string, number>[]>} */
    const results = {}
    for (let run = 1; run <= runs; run++) {
      for (const [name, variant] of Object.entries(variants)) {
        this.io.progress(`${labels.scenario} ${name}: run ${run} of ${runs}`)
        const result = await measure(variant)
        await this.stop()
        ;(results[name] ??= []).push(result)
        if (json) this.io.print(`${JSON.stringify({ ...labels, variant: name, ...result })}\n`)
      }
    }
    this.io.progress('')
    const columns = Object.entries(results).map(([name, all]) => ({ name, result: medians(all) }))
    if (!json) this.io.print(`${table(Object.values(labels).join(', '), columns)}\n`)
    return Object.fromEntries(columns.map(({ name, result }) => [name, result]))
  }
}

/**
 * @param {ServerKind} kind @param {string} folder for its files @param {number} port @param {ServerOptions} options
 * @returns {Promise<Command>} how it is started
 */
async function commandOf(kind, folder, port, options) {
  const node = (/** @type {string[]} */ ...args) => ({ program: process.execPath, args })
  if (kind === 'halley') return node(...(await halleyCommand(folder, port, options)))
  if (kind === 'uws' || kind === 'ws') return node('bench/controls.js', kind, String(port))
  const { peerCommand } = await import('./peers/index.js')
  return peerCommand(kind, { folder, host: HOST, port, key: API_KEY, workers: options.workers })
}

/**
 * @param {string} folder for the configuration
 * @param {number} port @param {ServerOptions} options
 * @returns {Promise<string[]>} arguments of node: those of `npm start`, so that the measured server is the usual one
 */
async function halleyCommand(
  folder,
  port,
  { workers, driver = 'auto', redis = null, history = 0, subscriptions = 1, flags = null, config: more = {} },
) {
  const file = join(folder, 'config.json')
  const config = {
    workers,
    http_server: { address: HOST, port, driver, ...more.http_server },
    client: {
      insecure: true,
      allowed_origins: ['*'],
      channel_limit: Math.max(CHANNEL_LIMIT, subscriptions),
      recovery_max_publication_limit: Math.max(RECOVERY_LIMIT, history),
      ...more.client,
    },
    ...(redis && { engine: { type: 'redis', redis } }),
    http_api: { key: API_KEY },
    uni_poll: { enabled: true },
    uni_sse: { enabled: true },
    uni_http_stream: { enabled: true },
    channel: {
      ...(history > 0 && {
        without_namespace: { history_size: history, history_ttl: '60s', force_recovery: true },
      }),
      namespaces: [{ name: 'kept', history_size: 10, history_ttl: '60s' }],
    },
    health: { enabled: true },
    log: { level: 'error' },
    // Load generators share the processors, and some scenarios ask for more than a worker can do.
    overload: { max_tick: '0s' },
    ...Object.fromEntries(
      Object.entries(more).filter(([block]) => !['client', 'http_server'].includes(block)),
    ),
  }
  await writeFile(file, JSON.stringify(config))
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  const [, ...start] = scripts.start.split(' ')
  const program = start.findIndex((/** @type {string} */ word) => !word.startsWith('-'))
  return [...(flags ?? start.slice(0, program)), ...start.slice(program), '-c', file, '--no-dashboard']
}

/**
 * Calls the server API. @param {Api} api @param {string} method @param {string} body JSON
 * @returns {Promise<boolean>} whether it succeeded; rejects without a connection
 */
export async function post({ url, key }, method, body) {
  const response = await fetch(`${url}/api/${method}`, {
    method: 'POST',
    headers: { 'X-API-Key': key },
    body,
  })
  return response.status === 200 && !(await response.text()).startsWith('{"error"')
}
