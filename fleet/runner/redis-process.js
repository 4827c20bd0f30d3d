import { mkdir } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { freePort } from './free-port.js'
import { KeptProcess } from './kept-process.js'
import { RunError } from './run-error.js'

const BINARY = 'redis-server'
/** It may take that long to answer, or to end, ms. */
const PATIENCE = 10_000
const PAUSE = 50

/**
 * A Redis server for a run, on a free port of loopback. What it holds is on disk after each write, so that stopping it loses nothing.
 */
export class RedisProcess {
  #dir
  /** @type {KeptProcess | null} */
  #process = null

  /** @param {string} dir folder for its data */
  constructor(dir) {
    this.#dir = dir
    this.port = 0
  }

  get address() {
    return `redis://127.0.0.1:${this.port}`
  }

  /**
   * @returns {Promise<void>} when it answers
   * @throws {RunError} there is no redis-server, or it does not come up
   */
  async start() {
    if (this.#process !== null) return
    await mkdir(this.#dir, { recursive: true })
    this.port ||= await freePort()
    const args = ['--port', String(this.port), '--bind', '127.0.0.1', '--dir', this.#dir]
    args.push('--appendonly', 'yes', '--appendfsync', 'everysec', '--save', '')
    const kept = new KeptProcess({
      log: join(this.#dir, 'redis.log'),
      command: BINARY,
      args,
      patience: PATIENCE,
    })
    this.#process = kept
    try {
      await kept.started
    } catch (error) {
      const missing = error.message.includes('ENOENT')
      throw new RunError(
        missing
          ? `${BINARY} is not on the PATH (Debian: apt-get install redis-server)`
          : `Redis: ${error.message}`,
      )
    }
    const end = Date.now() + PATIENCE
    while (!(await answers(this.port))) {
      if (kept.hasEnded || Date.now() > end) {
        const lines = await kept.lastLines()
        throw new RunError(`Redis does not come up: ${lines.at(-1) ?? 'it says nothing'}`)
      }
      await new Promise(resolve => setTimeout(resolve, PAUSE))
    }
  }

  /** @returns {Promise<void>} when it has ended; its data stays */
  async stop() {
    const kept = this.#process
    this.#process = null
    await kept?.stop()
  }
}

/**
 * @param {number} port
 * @returns {Promise<boolean>} whether a Redis there is ready
 */
const answers = port =>
  new Promise(resolve => {
    const socket = connect(port, '127.0.0.1', () => socket.write('PING\r\n'))
    socket.setTimeout(1000, () => socket.destroy())
    socket.once('data', data => {
      socket.destroy()
      resolve(String(data).startsWith('+PONG'))
    })
    socket.once('error', () => resolve(false))
    socket.once('close', () => resolve(false))
  })
