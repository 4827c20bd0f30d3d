// Processes of a run: they end with the runner, even if it is killed.

import { spawn } from 'node:child_process'
import { createReadStream } from 'node:fs'
import { mkdir, stat } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { cpuOf, memoryOf, signal } from './proc.js'
import { RunError } from './target.js'

/** A free port below the range of ephemeral ports, which connections of the run may use. @param {string} [address] */
export async function freePort(address = '127.0.0.1') {
  for (let tries = 0; tries < 50; tries++) {
    const port = FIRST_PORT + Math.floor(Math.random() * (LAST_PORT - FIRST_PORT))
    if (await isFree(port, address)) return port
  }
  return 0
}

const FIRST_PORT = 12_000
const LAST_PORT = 31_000

/** @param {number} port @param {string} address @returns {Promise<boolean>} */
const isFree = (port, address) =>
  new Promise(resolve => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, address, () => server.close(() => resolve(true)))
  })

const SUPERVISOR = fileURLToPath(new URL('supervisor.js', import.meta.url))
/** ms to wait after the stop timeout of a process. */
const GRACE = 5000
const LOG_BYTES = 16_384

/** A process that ends with this one: a supervisor process in between ends it. */
export class SupervisedProcess {
  pid = 0
  /** @type {Promise<{code: number | null, signal: string | null, requested: boolean}>} */
  ended = new Promise(() => {})
  hasEnded = false
  #supervisor
  /** Resolves when the supervisor exits, soon after its process. @type {Promise<unknown>} */
  #closed
  #stopTimeout

  /** @param {Command & {log: string, stopTimeout: number}} options `log`: file; `stopTimeout`: ms to exit */
  constructor({ log, command, args, stopTimeout }) {
    this.log = log
    this.#stopTimeout = stopTimeout
    // In its own process group: Ctrl-C in a terminal is for the runner alone.
    this.#supervisor = spawn(process.execPath, [SUPERVISOR, String(stopTimeout), log, command, ...args], {
      stdio: ['pipe', 'pipe', 'ignore'],
      detached: true,
    })
    this.#supervisor.stdin.on('error', () => {})
    this.#closed = new Promise(resolve => this.#supervisor.once('close', resolve).once('error', resolve))
    /** @type {Promise<any>} */
    this.started = new Promise((resolve, reject) => {
      this.ended = new Promise(end => {
        const done = (/** @type {any} */ how) => {
          this.hasEnded = true
          reject(new RunError(how.error ?? 'it exited immediately'))
          end(how)
        }
        createInterface({ input: this.#supervisor.stdout }).on('line', line => {
          const message = JSON.parse(line)
          if (message.pid !== undefined) {
            this.pid = message.pid
            resolve(message.pid)
          } else if (message.error !== undefined)
            done({ code: 127, signal: null, requested: false, error: message.error })
          else done(message)
        })
        this.#supervisor.once('error', error =>
          done({ code: 127, signal: null, requested: false, error: error.message }),
        )
        this.#supervisor.once('close', () => {
          // The supervisor was killed: end its child here.
          if (!this.hasEnded && this.pid > 0) signal(this.pid, 'SIGKILL')
          done({ code: null, signal: null, requested: true })
        })
      })
    })
    this.started.catch(() => {})
  }

  /** @returns {Promise<void>} after its exit */
  async stop() {
    this.#supervisor.stdin.end()
    const timer = setTimeout(() => {
      if (this.pid > 0) signal(this.pid, 'SIGKILL')
      this.#supervisor.kill('SIGKILL')
    }, this.#stopTimeout + GRACE)
    await this.ended
    await this.#closed
    clearTimeout(timer)
  }

  /** @returns {Promise<string[]>} last lines of its output */
  async lastLines() {
    const size = (await stat(this.log).catch(() => null))?.size ?? 0
    if (size === 0) return []
    let text = ''
    for await (const chunk of createReadStream(this.log, { start: Math.max(0, size - LOG_BYTES) }))
      text += chunk
    return text.split('\n').filter(Boolean)
  }
}

const PAUSE = 50
/** Timeouts of a start on a busy machine, and of an exit with many connections, ms. */
const START_TIMEOUT = 60_000
const STOP_TIMEOUT = 30_000

/** @typedef {{command: string, args: string[]}} Command */

export class ServerProcess {
  #name
  #options
  #isReady
  /** @type {SupervisedProcess} */
  process

  /**
   * @param {{name: string, port: number, command: Command, log: string, apiKey?: string, secure?: boolean, isReady?:
   *   (server: any) => Promise<boolean>}} options `name`: for errors; `secure`: TLS; `isReady`: default `/health` is ok
   */
  constructor({ name, port, command, log, apiKey = '', secure = false, isReady = isHealthy }) {
    this.#name = name
    this.port = port
    this.url = `http${secure ? 's' : ''}://127.0.0.1:${port}`
    this.apiKey = apiKey
    this.#isReady = isReady
    this.#options = { ...command, log, stopTimeout: STOP_TIMEOUT }
    this.process = this.spawn()
  }

  /** @returns {SupervisedProcess} starting */
  spawn() {
    return new SupervisedProcess(this.#options)
  }

  /** @returns {Promise<void>} when it is ready @throws {RunError} with its last log lines */
  async comeUp() {
    await this.process.started.catch(() => {})
    const end = Date.now() + START_TIMEOUT
    while (!(await this.#isReady(this))) {
      if (this.process.hasEnded || Date.now() > end) {
        const last = (await this.process.lastLines()).map(messageOf).slice(-2).join('; ')
        throw new RunError(`the ${this.#name} did not start: ${last || 'its log is empty'}`)
      }
      await sleep(PAUSE)
    }
  }

  get pid() {
    return this.process.pid
  }

  /** @returns {number} CPU time of all its processes, s */
  cpu() {
    return cpuOf(this.pid)
  }

  /** @returns {Record<string, number>} the same by part of the server; {}: no parts */
  cpuParts() {
    return {}
  }

  /** @returns {number} bytes of user space of all its processes */
  memory() {
    return memoryOf(this.pid)
  }

  /** @returns {Promise<void>} after its exit */
  async stop() {
    await this.process.stop()
  }
}

/** @param {{url: string}} server @returns {Promise<boolean>} */
export async function isHealthy({ url }) {
  const answer = await fetch(`${url}/health`, { signal: AbortSignal.timeout(5000) }).catch(() => null)
  await answer?.body?.cancel()
  return answer?.ok ?? false
}

/** @param {string} line of a log @returns {string} its message */
export function messageOf(line) {
  try {
    return String(JSON.parse(line).msg ?? line)
  } catch {
    // Plain text, or incomplete: the process was killed while writing.
    return line
  }
}

/**
 * Starts a server on a free port, again if another process takes the port first.
 * @template {ServerProcess} T @param {(port: number) => Promise<T>} create @throws {RunError}
 */
export async function startServer(create) {
  for (let attempt = 1; ; attempt++) {
    const server = await create(await freePort())
    try {
      await server.comeUp()
      return server
    } catch (error) {
      await server.stop()
      if (attempt >= TRIES || !/EADDRINUSE|in use/.test(error.message)) throw error
    }
  }
}

const TRIES = 3

const REDIS = 'redis-server'
const REDIS_TIMEOUT = 10_000

/** A Redis server for a run, on a free loopback port. With persistence a stop loses nothing. */
export class RedisProcess {
  #dir
  #persistence
  /** @type {SupervisedProcess | null} */
  #process = null
  /** Resolves when the old process has released its port. @type {Promise<void>} */
  #stopped = Promise.resolve()

  /** @param {string} dir for its data @param {'always' | 'everysec' | 'none'} [persistence] fsync; `none`: no file */
  constructor(dir, persistence = 'everysec') {
    this.#dir = dir
    this.#persistence = persistence
    this.port = 0
  }

  get pid() {
    return this.#process?.pid ?? 0
  }

  get address() {
    return `redis://127.0.0.1:${this.port}`
  }

  /** @returns {Promise<void>} when it is ready @throws {RunError} no redis-server, or it does not start */
  async start() {
    if (this.#process !== null) return
    await this.#stopped
    await mkdir(this.#dir, { recursive: true })
    this.port ||= await freePort()
    const args = ['--port', String(this.port), '--bind', '127.0.0.1', '--dir', this.#dir]
    args.push('--save', '')
    if (this.#persistence !== 'none') args.push('--appendonly', 'yes', '--appendfsync', this.#persistence)
    const child = new SupervisedProcess({
      log: join(this.#dir, 'redis.log'),
      command: REDIS,
      args,
      stopTimeout: REDIS_TIMEOUT,
    })
    this.#process = child
    try {
      await child.started
    } catch (error) {
      const missing = error.message.includes('ENOENT')
      throw new RunError(
        missing
          ? `${REDIS} is not on the PATH (Debian: apt-get install redis-server)`
          : `Redis: ${error.message}`,
      )
    }
    const end = Date.now() + REDIS_TIMEOUT
    while (!(await this.command('PING')).startsWith('+PONG')) {
      if (child.hasEnded || Date.now() > end) {
        const lines = await child.lastLines()
        throw new RunError(`Redis did not start: ${lines.at(-1) ?? 'its log is empty'}`)
      }
      await sleep(PAUSE)
    }
  }

  /** @param {string} command inline @returns {Promise<string>} the reply; '': none within a second */
  command(command) {
    return new Promise(resolve => {
      let reply = ''
      // QUIT makes the server close the connection after its reply.
      const socket = connect(this.port, '127.0.0.1', () => socket.write(`${command}\r\nQUIT\r\n`))
      socket.setTimeout(1000, () => socket.destroy())
      socket.on('data', data => {
        reply += data
      })
      socket.once('error', () => {})
      socket.once('close', () => resolve(reply))
    })
  }

  /** @param {string} name of a field of INFO @returns {Promise<number>} 0: no such field */
  async info(name) {
    const [, value] = new RegExp(`^${name}:([\\d.]+)`, 'm').exec(await this.command('INFO')) ?? []
    return Number(value ?? 0)
  }

  /** Kills it with SIGKILL. @returns {Promise<void>} after its exit; its data is kept */
  async kill() {
    if (this.#process !== null) signal(this.#process.pid, 'SIGKILL')
    await this.stop()
  }

  /** @returns {Promise<void>} after its exit; its data is kept */
  async stop() {
    const child = this.#process
    this.#process = null
    if (child !== null) this.#stopped = child.stop()
    await this.#stopped
  }
}
