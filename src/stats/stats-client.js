import { carryOut, checkCommand, commandName } from './stats-commands.js'

/** A command has few bytes. */
const MAX_LINE = 4096
/** Commands that wait for their end. */
const MAX_PENDING = 16
/** What a reader may leave unread before snapshots and log lines pass it by. */
const SKIP_BYTES = 1024 * 1024
/** What it may leave unread at all, so that those who only ask are cut off. */
const MAX_BYTES = 32 * 1024 * 1024
/** Updates (seconds) for which it may leave that much unread. */
const PATIENCE = 60
/** Snapshots of the history that one turn writes: the primary carries the broker, too. */
const PART = 20
/** The end of a first message whose history is empty. */
const EMPTY = /\]\}$/

/** @typedef {import('./stats-commands.js').StatsActions} StatsActions */
/** @typedef {import('./schema.js').StatsMessage} StatsMessage */

/**
 * Somebody at the stats socket: reads snapshots, writes commands.
 */
export class StatsClient {
  #socket
  #actions
  #monitor
  #greeted = false
  #behind = 0
  #pending = 0
  #partial = ''
  /** @type {(() => void) | null} */
  #endLog = null

  /**
   * @param {import('node:net').Socket} socket
   * @param {StatsActions} actions
   * @param {import('./monitor.js').Monitor} monitor
   */
  constructor(socket, actions, monitor) {
    this.#socket = socket
    this.#actions = actions
    this.#monitor = monitor
    socket.setEncoding('utf8')
    socket.on('error', () => socket.destroy())
    socket.on('close', () => this.#log(false))
  }

  /** Writes the first message, a part at a time, and listens from then on. */
  greet() {
    const { events, history, ...hello } = this.#monitor.hello()
    // History is the last field but one: what happens while it is written belongs to the events.
    this.#socket.write(JSON.stringify({ ...hello, history }).replace(EMPTY, ''))
    this.#writeHistory(0, '')
  }

  /**
   * @param {number} seq of the last snapshot that it has
   * @param {string} separator
   */
  #writeHistory(seq, separator) {
    if (this.#socket.destroyed) return
    const part = this.#monitor.history.after(seq, PART)
    if (part.length > 0) {
      this.#socket.write(separator + part.map(snapshot => JSON.stringify(snapshot)).join(','))
      return void setImmediate(() => this.#writeHistory(part[part.length - 1].seq, ','))
    }
    this.#socket.write(`],"events":${JSON.stringify(this.#monitor.hello().events)}}\n`)
    this.#greeted = true
    this.#socket.on('data', chunk => this.#read(String(chunk)))
  }

  /** @param {import('./monitor.js').Update} update */
  update(update) {
    // While it is being greeted, it comes with the history.
    if (!this.#greeted || !this.#takes()) return
    this.#behind = 0
    this.#socket.write(update.line())
  }

  /** @returns {boolean} false while it does not read: it misses what comes, and is cut off in the end */
  #takes() {
    if (this.#socket.writableLength <= SKIP_BYTES) return true
    if (++this.#behind > PATIENCE) this.#socket.destroy()
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

  /** Whoever writes that is no dashboard. */
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
      const command = checkCommand(given, this.#monitor.places)
      if (command.type === 'log') this.#log(command.on)
      else await this.#carryOut(command)
      this.#answer(name, null)
    } catch (error) {
      this.#answer(name, String(error?.message ?? error))
    }
  }

  /** @param {Exclude<import('./schema.js').StatsCommand, {type: 'log'}>} command */
  async #carryOut(command) {
    if (this.#pending >= MAX_PENDING) throw new Error('too many commands at once')
    this.#pending++
    try {
      await carryOut(command, this.#actions)
    } finally {
      this.#pending--
    }
  }

  /**
   * @param {string} command
   * @param {string | null} error
   */
  #answer(command, error) {
    if (!this.#socket.writable) return
    if (this.#socket.writableLength > MAX_BYTES) this.#socket.destroy()
    else this.#write({ type: 'done', command, error })
  }

  /** @param {StatsMessage} message */
  #write(message) {
    this.#socket.write(`${JSON.stringify(message)}\n`)
  }

  /** @param {boolean} on whether log lines are wanted */
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

  /** @param {string} error that it is told */
  end(error) {
    this.#answer('', error)
    this.#socket.end()
    this.#socket.destroySoon()
  }

  close() {
    this.#socket.destroy()
  }
}

/**
 * @param {string} line
 * @throws {Error}
 */
function parse(line) {
  try {
    return JSON.parse(line)
  } catch {
    throw new Error('a command is one JSON text on a line')
  }
}
