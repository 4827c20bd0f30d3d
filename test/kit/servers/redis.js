// Real Redis servers for tests: processes of their own on free ports, with data in temporary folders. They end with
// the test.

import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Redis } from 'ioredis'
import { skipFile, withoutProgram } from '../needs.js'
import { freePort } from '../ports.js'

export { startCluster } from './cluster.js'
export { startSentinels } from './sentinels.js'

const BINARY = process.env.REDIS_SERVER || 'redis-server'
const MISSING = `${BINARY} cannot be run: the tests want a Redis server (Debian: apt-get install redis-server; REDIS_SERVER may name one)`

/** For the option `skip` of a test. */
export const withoutRedis = () => withoutProgram(BINARY, 'redis-server; REDIS_SERVER may name one')

/** Skips this test file where there is no Redis server. @param {any} t the root, before its first test */
export const needsRedis = t => skipFile(t, withoutRedis())

/** Ends what it runs with the test's process, even when that one is killed. */
const GUARD = ['/usr/bin/setpriv', '--pdeathsig', 'KILL']
const READY = /Ready to accept connections|Sentinel ID is/
const TRIES = 20
const LOCAL = { address: '127.0.0.1', prefix: /** @type {string[]} */ ([]) }

/** @type {Set<import('node:child_process').ChildProcess>} */
const running = new Set()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

/** One server. */
export class RedisServer {
  /** @type {string[]} what it has said, newest last */
  log = []
  #args
  #prefix
  /** @type {import('node:child_process').ChildProcess | null} */
  #child = null
  /** @type {Promise<void>} */
  #exited = Promise.resolve()

  /**
   * @param {number} port
   * @param {string} dir where its data is
   * @param {string[]} args of its command line
   * @param {string} password '' = none
   * @param {{address: string, prefix: string[]}} host where it runs, by its address and what comes before a command
   *   there (hosts/network.js)
   */
  constructor(port, dir, args, password = '', host = LOCAL) {
    this.host = host.address
    this.#prefix = host.prefix
    this.port = port
    this.dir = dir
    this.password = password
    this.#args = args
  }

  /** For `engine.redis.address`. */
  get address() {
    const user = this.password === '' ? '' : `:${encodeURIComponent(this.password)}@`
    return `redis://${user}${this.host}:${this.port}`
  }

  /** @returns {number} of its process, 0 when it does not run */
  get pid() {
    return this.#child?.pid ?? 0
  }

  get runs() {
    return this.#child !== null
  }

  /**
   * @returns {Promise<void>} when it has loaded its data and accepts connections
   * @throws {Error} when it cannot be run, or ends before
   */
  start() {
    const guard = existsSync(GUARD[0]) ? GUARD : []
    const [command, ...args] = [...guard, ...this.#prefix, BINARY, ...this.#args]
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] })
    this.#child = child
    running.add(child)
    this.#exited = new Promise(resolve => {
      const gone = () => {
        running.delete(child)
        if (this.#child === child) this.#child = null
        resolve()
      }
      child.once('exit', gone)
      child.once('error', gone)
    })
    return new Promise((resolve, reject) => {
      for (const stream of [child.stdout, child.stderr]) {
        createInterface({ input: stream }).on('line', line => {
          this.log.push(line)
          if (this.log.length > 1000) this.log.shift()
          if (READY.test(line)) resolve()
        })
      }
      child.once('error', () => reject(new Error(MISSING)))
      child.once('close', () => {
        const text = this.log.slice(-5).join('; ')
        reject(new Error(text.includes('failed to execute') ? MISSING : `redis-server ended: ${text}`))
      })
    })
  }

  /** SIGKILL: what it had in memory only is gone. Resolves when it is dead. */
  async kill() {
    this.#child?.kill('SIGKILL')
    await this.#exited
  }

  /** SIGTERM: it writes down what it has been told to keep. Resolves when it is gone. */
  async shutdown() {
    this.#child?.kill('SIGTERM')
    await this.#exited
  }

  /** It stands still; its connections stay open. */
  stop() {
    this.#child?.kill('SIGSTOP')
  }

  cont() {
    this.#child?.kill('SIGCONT')
  }

  /**
   * Begins again on the same port and in the same folder; killed before, if it runs.
   * @returns {Promise<void>} as `start`
   */
  async restart() {
    await this.kill()
    await this.start()
  }

  /**
   * A command, on a connection of its own.
   * @param {string} command
   * @param {...(string | number)} args
   * @returns {Promise<any>} the reply; rejects with what Redis says, and when it is out of reach
   */
  async call(command, ...args) {
    const redis = new Redis({
      host: this.host,
      port: this.port,
      password: this.password || undefined,
      lazyConnect: true,
      disableClientInfo: true,
      enableReadyCheck: false,
      maxRetriesPerRequest: 0,
      retryStrategy: null,
    })
    redis.on('error', () => {})
    try {
      await redis.connect()
      return await redis.call(command, ...args)
    } finally {
      redis.disconnect()
    }
  }

  /**
   * @param {string} [section]
   * @returns {Promise<Record<string, string>>} what INFO says
   */
  async info(section = 'everything') {
    return fields(await this.call('INFO', section))
  }

  /** Ends it for good, and its data. */
  async end() {
    await this.kill()
    await rm(this.dir, { recursive: true, force: true })
  }
}

/**
 * @param {string} text lines `name:value`
 * @returns {Record<string, string>}
 */
export function fields(text) {
  const lines = text.split(/\r?\n/).filter(line => line.includes(':'))
  return Object.fromEntries(
    lines.map(line => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]),
  )
}

/**
 * Starts a server on the port that was given, or on one that nobody else has got in the meantime.
 *
 * @param {any} t ends with this test
 * @param {(port: number, dir: string) => string[] | Promise<string[]>} args of its command line
 * @param {{port?: number, dir?: string, password?: string, host?: {address: string, prefix: string[]}}} [options]
 *   `host`: as of RedisServer
 * @returns {Promise<RedisServer>} running
 */
export async function spawnRedis(t, args, { port, dir, password, host } = {}) {
  for (let tried = 1; ; tried++) {
    const chosen = port ?? (await freePort())
    const folder = dir ?? (await mkdtemp(join(tmpdir(), 'halley-redis-')))
    const server = new RedisServer(chosen, folder, await args(chosen, folder), password, host)
    try {
      await server.start()
      t.teardown(() => server.end())
      return server
    } catch (error) {
      if (dir === undefined) await server.end()
      const taken = server.log.some(line => line.includes('already in use'))
      if (!taken || port !== undefined || tried === TRIES) throw error
    }
  }
}

/**
 * @typedef {object} RedisOptions
 * @property {string[]} [args] more of its command line, such as `['--maxmemory', '10mb']`
 * @property {number} [port] default: a free one
 * @property {string} [dir] where its data is; removed at the end. Default: a temporary folder
 * @property {string} [password]
 * @property {boolean | 'always'} [aof] keep what is written over a SIGKILL. `true`: fsync once a second, 'always':
 *   before each answer
 */

/**
 * @param {RedisOptions & {port: number, dir: string, host?: {address: string}}} options
 * @returns {string[]} the command line
 */
export function serverArgs({ port, dir, password = '', aof = false, args = [], host = LOCAL }) {
  return [
    ...[
      '--port',
      `${port}`,
      '--bind',
      host.address,
      '--protected-mode',
      'no',
      '--dir',
      dir,
      '--save',
      '',
      '--daemonize',
      'no',
    ],
    // A replica is served at once, and not together with others that may come.
    ...['--repl-diskless-sync-delay', '0'],
    ...(password === '' ? [] : ['--requirepass', password, '--masterauth', password]),
    ...(aof ? ['--appendonly', 'yes', '--appendfsync', aof === 'always' ? 'always' : 'everysec'] : []),
    ...args,
  ]
}

/**
 * One Redis server, which keeps nothing over its end unless it is told to.
 *
 * @param {any} t ends with this test
 * @param {RedisOptions} [options]
 * @returns {Promise<RedisServer>} running
 */
export function startRedis(t, options = {}) {
  return spawnRedis(t, (port, dir) => serverArgs({ ...options, port, dir }), options)
}
