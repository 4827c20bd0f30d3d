import { once } from 'node:events'
import { lstatSync, unlinkSync } from 'node:fs'
import { createServer } from 'node:net'
import { dirname } from 'node:path'
import { checkLength, isAlive, makeOwnFolder } from './socket-path.js'
import { checkCommand, commandName, runCommand } from './stats-commands.js'

/** @import { Server, Socket } from 'node:net' */
/** @import { Logger } from 'pino' */
/** @import { Monitor, Update } from './monitor.js' */
/** @import { StatsCommand, StatsMessage } from './schema.js' */
/** @import { StatsActions } from './stats-commands.js' */

const MAX_CLIENTS = 64
/** Mode: only the owner may open the socket. */
const SOCKET_UMASK = 0o177
const MAX_LINE = 4096
/** Concurrent commands of one client. */
const MAX_PENDING = 16
/** Unread bytes that pause snapshots and log lines. */
const SKIP_BYTES = 1024 * 1024
/** Maximum unread bytes of a client that sends commands. */
const MAX_BYTES = 32 * 1024 * 1024
/** Maximum consecutive skipped snapshots. */
const MAX_SKIPPED = 60
/** Snapshots of the history written in one turn of the primary's event loop. */
const PART = 20
/** End of a first message with an empty history. */
const EMPTY = /\]\}$/

class StatsClient {
  #socket
  #actions
  #monitor
  #ready = false
  #skipped = 0
  #pending = 0
  #partial = ''
  /** @type {(() => void) | null} */
  #endLog = null

  /** @param {Socket} socket @param {StatsActions} actions @param {Monitor} monitor */
  constructor(socket, actions, monitor) {
    this.#socket = socket
    this.#actions = actions
    this.#monitor = monitor
    socket.setEncoding('utf8')
    socket.on('error', () => socket.destroy())
    socket.on('close', () => this.#log(false))
  }

  sendHistory() {
    const { events, history, ...hello } = this.#monitor.hello()
    // `history` comes first, so that `events` includes later ones.
    this.#socket.write(JSON.stringify({ ...hello, history }).replace(EMPTY, ''))
    this.#writeHistory(0, '')
  }

  /** @param {number} seq last one written @param {string} separator */
  #writeHistory(seq, separator) {
    if (this.#socket.destroyed) return
    const part = this.#monitor.history.after(seq, PART)
    if (part.length > 0) {
      this.#socket.write(separator + part.map(snapshot => JSON.stringify(snapshot)).join(','))
      return void setImmediate(() => this.#writeHistory(part[part.length - 1].seq, ','))
    }
    this.#socket.write(`],"events":${JSON.stringify(this.#monitor.hello().events)}}\n`)
    this.#ready = true
    this.#socket.on('data', chunk => this.#read(String(chunk)))
  }

  /** @param {Update} update */
  update(update) {
    // Until the history is sent, new snapshots are part of it.
    if (!this.#ready || !this.#keepsUp()) return
    this.#skipped = 0
    this.#socket.write(update.line())
  }

  /** Returns false while too much is unread; disconnects a client that never catches up. */
  #keepsUp() {
    if (this.#socket.writableLength <= SKIP_BYTES) return true
    if (++this.#skipped > MAX_SKIPPED) this.#socket.destroy()
    return false
  }

  /** @param {string} chunk */
  #read(chunk) {
    const lines = (this.#partial + chunk).split('\n')
    this.#partial = lines.pop() ?? ''
    for (const line of lines) {
      if (line.length > MAX_LINE) return this.#refuse()
      if (line.trim() !== '') this.#command(line)
    }
    if (this.#partial.length > MAX_LINE) this.#refuse()
  }

  #refuse() {
    this.#partial = ''
    this.#socket.removeAllListeners('data')
    this.#socket.resume()
    this.end(`a command has at most ${MAX_LINE} characters`)
  }

  /** @param {string} line */
  async #command(line) {
    let name = ''
    try {
      const given = parse(line)
      name = commandName(given)
      const command = checkCommand(given, this.#monitor.slots)
      let text
      if (command.type === 'log') this.#log(command.on)
      else text = await this.#runCommand(command)
      this.#reply(name, null, text)
    } catch (error) {
      this.#reply(name, String(error?.message ?? error))
    }
  }

  /** @param {Exclude<StatsCommand, {type: 'log'}>} command */
  async #runCommand(command) {
    if (this.#pending >= MAX_PENDING) throw new Error('too many commands at once')
    this.#pending++
    try {
      return await runCommand(command, this.#actions)
    } finally {
      this.#pending--
    }
  }

  /** @param {string} command @param {string | null} error @param {string} [text] */
  #reply(command, error, text) {
    if (!this.#socket.writable) return
    if (this.#socket.writableLength > MAX_BYTES) this.#socket.destroy()
    else this.#write({ type: 'done', command, error, text })
  }

  /** @param {StatsMessage} message */
  #write(message) {
    this.#socket.write(`${JSON.stringify(message)}\n`)
  }

  /** @param {boolean} on */
  #log(on) {
    if (!on) {
      this.#endLog?.()
      this.#endLog = null
    } else {
      this.#endLog ??= this.#actions.log(line => {
        if (this.#socket.writableLength <= SKIP_BYTES) this.#write({ type: 'log', line: line.trimEnd() })
      })
    }
  }

  /** @param {string} error */
  end(error) {
    this.#reply('', error)
    this.#socket.end()
    this.#socket.destroySoon()
  }

  close() {
    this.#socket.destroy()
  }
}

/** @param {string} line @throws {Error} */
function parse(line) {
  try {
    return JSON.parse(line)
  } catch {
    throw new Error('a command must be one JSON object on one line')
  }
}

/** Clients may restart workers and stop the gateway, so only its user can open the socket. */
export class StatsSocket {
  #server
  #monitor
  /** @type {Set<StatsClient>} */
  #clients = new Set()
  #off

  /** @param {Server} server @param {string} path @param {Monitor} monitor @param {StatsActions} actions */
  constructor(server, path, monitor, actions) {
    this.#server = server
    this.path = path
    this.#monitor = monitor
    server.on('connection', socket => this.#accept(socket, actions))
    this.#off = monitor.on(update => {
      for (const client of this.#clients) client.update(update)
    })
  }

  /**
   * @param {object} options
   * @param {string} options.path see socketPath()
   * @param {boolean} [options.own] make its folder, for this user only
   * @param {Monitor} options.monitor
   * @param {StatsActions} options.actions
   * @param {Pick<Logger, 'error'>} options.log
   * @returns {Promise<StatsSocket | null>} null after a logged error
   */
  static async open({ path, own = true, monitor, actions, log }) {
    try {
      checkLength(path)
      if (own) makeOwnFolder(dirname(path))
      await removeStale(path)
      return new StatsSocket(await listen(path), path, monitor, actions)
    } catch (error) {
      log.error(`no stats socket, the dashboard cannot find this gateway: ${error.message}`)
      return null
    }
  }

  /** @param {Socket} socket @param {StatsActions} actions */
  #accept(socket, actions) {
    const client = new StatsClient(socket, actions, this.#monitor)
    if (this.#clients.size >= MAX_CLIENTS) return client.end(`too many stats clients (limit ${MAX_CLIENTS})`)
    this.#clients.add(client)
    socket.on('close', () => this.#clients.delete(client))
    client.sendHistory()
  }

  /** @returns {Promise<void>} */
  close() {
    this.#off()
    for (const client of this.#clients) client.close()
    return new Promise(resolve => this.#server.close(() => resolve()))
  }
}

/** Removes the socket of a killed gateway. @param {string} path @throws {Error} if it is another file, or in use */
async function removeStale(path) {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  if (!stat) return
  if (!stat.isSocket()) throw new Error(`${path} exists and is not a socket`)
  if (await isAlive(path)) throw new Error(`another gateway listens at ${path}`)
  unlinkSync(path)
}

/** @param {string} path @returns {Promise<Server>} */
async function listen(path) {
  // Clients may half-close and still read the replies.
  const server = createServer({ allowHalfOpen: true })
  // `listen` creates the file within this call: no other user can ever open it.
  const mask = process.umask(SOCKET_UMASK)
  try {
    server.listen(path)
  } finally {
    process.umask(mask)
  }
  await once(server, 'listening')
  // Errors of single connections (out of descriptors).
  server.on('error', () => {})
  return server
}
