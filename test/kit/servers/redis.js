// Real Redis servers for tests, on free ports, with data in temporary folders.

import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { skipFile, withoutProgram } from '../needs.js'
import { freePort } from '../ports.js'
import { ServerProcess, startServer } from './server-process.js'

export { startCluster } from './cluster.js'
export { startSentinels } from './sentinels.js'

const BINARY = process.env.REDIS_SERVER || 'redis-server'
const MISSING = `${BINARY} cannot be run: the tests want a Redis server (Debian: apt-get install redis-server; REDIS_SERVER may name one)`

/** For the `skip` option of a test. */
export const withoutRedis = () => withoutProgram(BINARY, 'redis-server; REDIS_SERVER may name one')

/** Skips this test file without a Redis server. @param {any} t the root, before its first test */
export const needsRedis = t => skipFile(t, withoutRedis())

/**
 * @typedef {{address: string, prefix: string[]}} Host its address, and its command prefix (hosts/network.js)
 */

/** @type {Host} */
const LOCAL = { address: '127.0.0.1', prefix: [] }

export class RedisServer extends ServerProcess {
  /** @param {number} port @param {string} dir @param {string[]} args @param {string} password @param {Host} host */
  constructor(port, dir, args, password, { address, prefix }) {
    const [command, ...rest] = [...prefix, BINARY, ...args]
    const ready = /Ready to accept connections|Sentinel ID is/
    super({ command, args: rest, ready, missing: MISSING }, port, dir)
    this.host = address
    this.dir = dir
    this.password = password
  }

  /** For `engine.redis.address`. */
  get address() {
    const user = this.password === '' ? '' : `:${encodeURIComponent(this.password)}@`
    return `redis://${user}${this.host}:${this.port}`
  }

  get runs() {
    return this.pid !== 0
  }

  /** Pauses it; its connections stay open. @override */
  async stop() {
    this.signal('SIGSTOP')
  }

  cont() {
    this.signal('SIGCONT')
  }

  /**
   * A command on a new connection.
   * @param {string} command @param {...(string | number)} args
   * @returns {Promise<any>} the reply; rejects with the error of Redis or of the connection
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

  /** @param {string} [section] @returns {Promise<Record<string, string>>} INFO */
  async info(section = 'everything') {
    return fields(await this.call('INFO', section))
  }

  /** Ends the server and removes its data. */
  end() {
    return super.stop()
  }
}

/** @param {string} text lines `name:value` @returns {Record<string, string>} */
export const fields = text =>
  Object.fromEntries([...text.matchAll(/^([^:\r\n]*):(.*?)\r?$/gm)].map(([, name, value]) => [name, value]))

/**
 * Starts a server on the given port, or on a free one.
 * @param {any} t ends with this test
 * @param {(port: number, dir: string) => string[] | Promise<string[]>} args of its command line
 * @param {{port?: number, dir?: string, password?: string, host?: Host}} [options]
 * @returns {Promise<RedisServer>} running
 */
export const spawnRedis = (t, args, { port, dir, password = '', host = LOCAL } = {}) =>
  startServer(
    t,
    async () => {
      const chosen = port ?? (await freePort())
      const folder = dir ?? (await mkdtemp(join(tmpdir(), 'halley-redis-')))
      return new RedisServer(chosen, folder, await args(chosen, folder), password, host)
    },
    server => server.end(),
  )

/**
 * @typedef {object} RedisOptions
 * @property {string[]} [args] more arguments, such as `['--maxmemory', '10mb']`
 * @property {number} [port] default: a free one
 * @property {string} [dir] folder of its data, removed at the end; default: a temporary folder
 * @property {string} [password]
 * @property {boolean | 'always'} [aof] data survives a SIGKILL. `true`: fsync once a second, 'always': before each
 *   reply
 */

/**
 * @param {RedisOptions & {port: number, dir: string, host?: {address: string}}} options @returns {string[]} arguments
 */
export function serverArgs({ port, dir, password = '', aof = false, args = [], host = LOCAL }) {
  return [
    ...['--port', `${port}`, '--bind', host.address, '--protected-mode', 'no'],
    ...['--dir', dir, '--save', '', '--daemonize', 'no'],
    // Synchronize a replica without waiting for others.
    ...['--repl-diskless-sync-delay', '0'],
    ...(password === '' ? [] : ['--requirepass', password, '--masterauth', password]),
    ...(aof ? ['--appendonly', 'yes', '--appendfsync', aof === 'always' ? 'always' : 'everysec'] : []),
    ...args,
  ]
}

/**
 * One server. Without `aof`, it loses its data on exit.
 * @param {any} t ends with this test @param {RedisOptions} [options] @returns {Promise<RedisServer>} running
 */
export const startRedis = (t, options = {}) =>
  spawnRedis(t, (port, dir) => serverArgs({ ...options, port, dir }), options)
