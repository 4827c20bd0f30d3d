import { lstatSync, unlinkSync } from 'node:fs'
import { createServer } from 'node:net'
import { dirname } from 'node:path'
import { checkLength, isAlive, ownFolder } from './socket-path.js'
import { StatsClient } from './stats-client.js'

/** Dashboards that may watch at once. */
const MAX_CLIENTS = 64
/** A socket of ours is ours alone. */
const OTHERS = 0o177

/**
 * The stats stream on a Unix socket: one JSON text a line. Who can open the socket may watch the gateway, restart its workers and
 * stop it, so it is for this user only.
 */
export class StatsSocket {
  #server
  #monitor
  /** @type {Set<StatsClient>} */
  #clients = new Set()
  #off

  /**
   * @param {import('node:net').Server} server that listens
   * @param {string} path
   * @param {import('./monitor.js').Monitor} monitor
   * @param {import('./stats-commands.js').StatsActions} actions
   */
  constructor(server, path, monitor, actions) {
    this.#server = server
    this.path = path
    this.#monitor = monitor
    server.on('connection', socket => this.#greet(socket, actions))
    this.#off = monitor.on(update => {
      for (const client of this.#clients) client.update(update)
    })
  }

  /**
   * @param {object} options
   * @param {string} options.path see socketPath()
   * @param {boolean} [options.own] whether its folder is made by us, and for us: not so for a path that somebody has named
   * @param {import('./monitor.js').Monitor} options.monitor
   * @param {import('./stats-commands.js').StatsActions} options.actions
   * @param {Pick<import('pino').Logger, 'error'>} options.log
   * @returns {Promise<StatsSocket | null>} null when it cannot be had, which is logged: the gateway goes on without
   */
  static async open({ path, own = true, monitor, actions, log }) {
    try {
      checkLength(path)
      if (own) ownFolder(dirname(path))
      await clear(path)
      return new StatsSocket(await listen(path), path, monitor, actions)
    } catch (error) {
      log.error(`no stats socket, so \`halley dashboard\` cannot find this gateway: ${error.message}`)
      return null
    }
  }

  /**
   * @param {import('node:net').Socket} socket
   * @param {import('./stats-commands.js').StatsActions} actions
   */
  #greet(socket, actions) {
    const client = new StatsClient(socket, actions, this.#monitor)
    if (this.#clients.size >= MAX_CLIENTS) return client.end('too many watch this gateway')
    this.#clients.add(client)
    socket.on('close', () => this.#clients.delete(client))
    client.greet()
  }

  /** @returns {Promise<void>} when all are gone, and the file is */
  close() {
    this.#off()
    for (const client of this.#clients) client.close()
    return new Promise(resolve => this.#server.close(() => resolve()))
  }
}

/**
 * Takes away what a gateway that was killed has left.
 * @param {string} path
 * @throws {Error} when it is something else
 */
async function clear(path) {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  if (!stat) return
  if (!stat.isSocket()) throw new Error(`${path} is there, and is no socket`)
  if (await isAlive(path)) throw new Error(`another gateway listens at ${path}`)
  unlinkSync(path)
}

/**
 * @param {string} path
 * @returns {Promise<import('node:net').Server>}
 */
function listen(path) {
  return new Promise((resolve, reject) => {
    // Who only asks something closes its half, and wants to read on.
    const server = createServer({ allowHalfOpen: true })
    server.once('error', reject)
    server.once('listening', () => {
      // Where descriptors are short, one that cannot be accepted is an error, too: it may come again.
      server.on('error', () => {})
      resolve(server)
    })
    // The file is made within this call: there is no moment in which others could open it.
    const mask = process.umask(OTHERS)
    try {
      server.listen(path)
    } finally {
      process.umask(mask)
    }
  })
}
