import { closeSync, constants, fstatSync, openSync, statSync, writeSync } from 'node:fs'
import { createRequire } from 'node:module'
import { pino } from 'pino'
import { escapeControls } from './terminal-text.js'

/** @import { Logger } from 'pino' */

/** For pino-pretty: loading it takes 15 ms and few processes need it. */
const require = createRequire(import.meta.url)

const STDOUT = 1
/** Lines kept while they cannot be written, bytes; later ones are dropped and counted. */
const MAX_WAITING = 256 * 1024
const RETRY_MS = 250
/** Interval of the attempts within `drained`, ms. */
const DRAIN_MS = 20
/** Time between two looks whether the file was moved away, ms. */
const MOVED_MS = 1000

const { O_APPEND, O_CREAT, O_NOCTTY, O_NONBLOCK, O_WRONLY } = constants
/** A pipe or terminal that nobody reads must not block the event loop. */
const FLAGS = O_WRONLY | O_APPEND | O_NOCTTY | O_NONBLOCK

/** Why a line cannot be written, by error code. @type {Record<string, string>} */
const REASONS = {
  EAGAIN: 'nobody reads it',
  EDQUOT: 'the disk quota is used up',
  EMFILE: 'too many open files',
  ENFILE: 'too many open files on this machine',
  ENOSPC: 'the disk is full',
  ENXIO: 'nobody reads it',
  EPIPE: 'nobody reads it',
}

/** @param {unknown} error */
const reasonOf = error => {
  const { code = '', message } = /** @type {NodeJS.ErrnoException} */ (error)
  return REASONS[code] ? `${REASONS[code]} (${code})` : message
}

/**
 * A descriptor of standard output that never blocks. A pipe or terminal is opened anew: its flags belong to all
 * processes that share it. A socket cannot be opened; Node.js has made it non-blocking with `process.stdout`.
 */
function openStdout() {
  try {
    const stat = fstatSync(STDOUT)
    if (stat.isFIFO() || stat.isCharacterDevice()) return openSync(`/proc/self/fd/${STDOUT}`, FLAGS)
  } catch {
    // No /proc, or a pipe without a reader.
  }
  return STDOUT
}

/**
 * Appends lines to a file or to standard output. It neither blocks nor throws: a full disk or a stalled reader must not
 * stop the gateway. Lines that cannot be written wait for the next attempt, within MAX_WAITING bytes; a line that was
 * written in part is completed first. If the file is moved away or removed (`logrotate`), a new one is started. pino's
 * own destination throws there, or waits in the event loop.
 */
class LogWriter {
  /** Lines dropped since the start. */
  dropped = 0
  /** Why lines wait; null: they do not. @type {string | null} */
  error = null
  /** Called when all waiting lines are written after an outage with dropped lines. */
  onRecovered = (/** @type {{lines: number, reason: string, seconds: number}} */ _outage) => {}
  #path
  #fd = -1
  /** Whether the error of the first attempt to open the file may pass by itself. */
  #mayPass = true
  /** @type {Buffer[]} lines, the first one maybe without its beginning */
  #waiting = []
  /** Whether the first waiting line is without its beginning, which is written. */
  #begun = false
  #bytes = 0
  #droppedBefore = 0
  #failedAt = 0
  /** @type {NodeJS.Timeout | undefined} */
  #timer
  #clock
  #lookedAt = 0

  /** @param {string} path '' = standard output @param {() => number} clock ms, monotonic */
  constructor(path, clock) {
    this.#path = path
    this.#clock = clock
    try {
      this.#open()
    } catch (error) {
      this.#mayPass = error.code in REASONS
      this.#failed(error)
    }
  }

  /** @throws {Error} if the file cannot be opened for a reason that does not pass by itself */
  check() {
    if (!this.#mayPass) throw new Error(`log.file cannot be opened: ${this.error}`)
  }

  /** @param {string} line with its line feed */
  write(line) {
    const bytes = Buffer.from(line)
    if (this.#path !== '') this.#follow()
    const written = this.#waiting.length > 0 ? 0 : this.#write(bytes)
    if (written === bytes.length) return
    if (this.#bytes > 0 && this.#bytes + bytes.length > MAX_WAITING) {
      this.dropped++
      return
    }
    if (written > 0) this.#begun = true
    this.#waiting.push(bytes.subarray(written))
    this.#bytes += bytes.length - written
    this.#timer ??= setInterval(() => this.#flush(), RETRY_MS).unref()
  }

  /** @param {number} timeout ms @returns {Promise<void>} when all lines are written, or the time is over */
  async drained(timeout) {
    const deadline = performance.now() + timeout
    while (!this.#flush() && performance.now() < deadline)
      await new Promise(resolve => setTimeout(resolve, DRAIN_MS))
  }

  /** @returns {boolean} whether all lines are written */
  #flush() {
    if (this.#path !== '') this.#follow()
    while (this.#waiting.length > 0) {
      const [first] = this.#waiting
      const written = this.#write(first)
      this.#bytes -= written
      if (written < first.length) {
        if (written > 0) this.#begun = true
        this.#waiting[0] = first.subarray(written)
        return false
      }
      this.#waiting.shift()
      this.#begun = false
    }
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#recovered()
    return true
  }

  /** @param {Buffer} bytes @returns {number} bytes written */
  #write(bytes) {
    try {
      if (this.#fd === -1) this.#open()
      return writeSync(this.#fd, bytes)
    } catch (error) {
      this.#failed(error)
      return 0
    }
  }

  #open() {
    this.#fd = this.#path === '' ? openStdout() : openSync(this.#path, FLAGS | O_CREAT, 0o666)
  }

  /** Starts a new file if the open one was moved away or removed. */
  #follow() {
    const now = this.#clock()
    if (this.#fd === -1 || now - this.#lookedAt < MOVED_MS) return
    this.#lookedAt = now
    try {
      const open = fstatSync(this.#fd)
      if (!open.isFile()) return
      const found = statSync(this.#path, { throwIfNoEntry: false })
      if (found?.ino === open.ino && found.dev === open.dev) return
      const old = this.#fd
      this.#open()
      closeSync(old)
    } catch {
      // No right to make a file here: the moved one gets the lines.
      return
    }
    if (!this.#begun) return
    // Its rest would begin the new file.
    this.#bytes -= this.#waiting[0].length
    this.#waiting.shift()
    this.#begun = false
    this.dropped++
  }

  /** @param {unknown} error */
  #failed(error) {
    if (this.error === null) this.#failedAt = performance.now()
    this.error = reasonOf(error)
  }

  #recovered() {
    const { error: reason } = this
    if (reason === null) return
    this.error = null
    const lines = this.dropped - this.#droppedBefore
    this.#droppedBefore = this.dropped
    const seconds = Math.ceil((performance.now() - this.#failedAt) / 1000)
    if (lines > 0) this.onRecovered({ lines, reason, seconds })
  }

  close() {
    clearInterval(this.#timer)
    if (this.#fd > STDOUT) closeSync(this.#fd)
    this.#fd = -1
  }
}

/** Destination of a process's log lines: a file or standard output, and a forwarding function. */
export class LogOutput {
  /** Whether lines are written to standard output; a file always gets them. */
  shown = true
  /** @type {((line: string) => void) | null} gets each line as JSON text, with its line feed */
  forward = null
  #writer
  /** @type {((line: string) => string) | null} */
  #format = null

  /**
   * Writes JSON lines; readable lines to a terminal.
   * @param {{file: string}} options of `log` @param {boolean} terminal whether standard output is one
   * @param {() => number} [clock] ms, monotonic
   */
  constructor({ file }, terminal, clock = () => performance.now()) {
    this.toFile = file !== ''
    this.#writer = new LogWriter(file, clock)
    if (!this.toFile && terminal) {
      const format = /** @type {any} */ (require('pino-pretty')).prettyFactory({
        translateTime: 'HH:MM:ss.l',
        ignore: 'pid,hostname',
        singleLine: true,
        // All other texts are shown as JSON.
        messageFormat: (/** @type {Record<string, any>} */ line, /** @type {string} */ key) =>
          escapeControls(String(line[key] ?? ''), ''),
      })
      // An escape character is now the beginning of a colour of pino-pretty.
      this.#format = line => escapeControls(format(line), '\n\x1b')
    }
  }

  /** Lines dropped since the start, and why lines cannot be written now; null: they can. */
  get state() {
    const { dropped, error } = this.#writer
    return { dropped, error }
  }

  /** @throws {Error} if the file cannot be opened; a full disk is no reason */
  check() {
    this.#writer.check()
  }

  /** @param {string} line called by pino */
  write(line) {
    if (this.shown || this.toFile) this.#writer.write(this.#format ? this.#format(line) : line)
    this.forward?.(line)
  }

  /** @param {number} timeout ms @returns {Promise<void>} when all lines are written, or the time is over */
  drained(timeout) {
    return this.#writer.drained(timeout)
  }

  /** @param {(outage: {lines: number, reason: string, seconds: number}) => void} listener */
  onRecovered(listener) {
    this.#writer.onRecovered = listener
  }

  close() {
    this.#writer.close()
  }
}

/** @param {{level: string}} options of `log` @returns {string} pino's name */
export const levelOf = ({ level }) => (level === 'none' ? 'silent' : level)

/** pino's serializer marks the error itself; those of errors.js are frozen. @param {any} error */
const describe = error =>
  pino.stdSerializers.err(error instanceof Error && Object.isFrozen(error) ? Object.create(error) : error)

/**
 * @param {{level: string, file: string}} options of `log` @param {LogOutput} output
 * @param {object} [bindings] fields of every line
 * @returns {Logger}
 */
export function createLog({ level }, output, bindings = {}) {
  const log = pino(
    {
      level: levelOf({ level }),
      base: bindings,
      timestamp: pino.stdTimeFunctions.isoTime,
      serializers: { err: describe },
    },
    output,
  )
  output.onRecovered(outage => log.warn(outage, 'log lines were dropped while the log could not be written'))
  return log
}

/** @typedef {'debug' | 'info' | 'warn' | 'error'} Level */
/** @typedef {Record<Level, (fields: object, message: string) => void>} Log a Logger or a LimitedLog */
/** @typedef {(fields: object | (() => object), message: string, key?: string) => void} WriteLimited */

/** Lines of one key in an interval; further ones are counted. */
const LIMIT_LINES = 10
const LIMIT_INTERVAL_MS = 60_000
const MAX_KEYS = 200

/**
 * A log for lines that strangers can cause: each message is written a few times a minute, further ones are counted and
 * reported in one line at the end of the minute. A key splits a message that has several causes. Fields may be a
 * function, called only for a line that is written.
 */
export class LimitedLog {
  #log
  #lines
  #interval
  /** Runs while there are lines. @type {NodeJS.Timeout | undefined} */
  #timer
  /** @type {Map<string, {level: Level, lines: number}>} by key, in this interval */
  #keys = new Map()
  /** Of keys beyond MAX_KEYS. @type {{level: Level, lines: number}} */
  #others = { level: 'warn', lines: 0 }

  /**
   * @param {Pick<Logger, Level>} log @param {object} [options] @param {number} [options.lines] for each key
   * @param {number} [options.interval] ms
   */
  constructor(log, { lines = LIMIT_LINES, interval = LIMIT_INTERVAL_MS } = {}) {
    this.#log = log
    this.#lines = lines
    this.#interval = interval
  }

  /** @type {WriteLimited} */
  debug(fields, message, key) {
    this.#write('debug', fields, message, key)
  }

  /** @type {WriteLimited} */
  info(fields, message, key) {
    this.#write('info', fields, message, key)
  }

  /** @type {WriteLimited} */
  warn(fields, message, key) {
    this.#write('warn', fields, message, key)
  }

  /** @type {WriteLimited} */
  error(fields, message, key) {
    this.#write('error', fields, message, key)
  }

  /** @param {Level} level @param {object | (() => object)} fields @param {string} message @param {string} [key] */
  #write(level, fields, message, key = message) {
    this.#timer ??= setTimeout(() => this.report(), this.#interval).unref()
    let known = this.#keys.get(key)
    if (known === undefined) {
      if (this.#keys.size >= MAX_KEYS) known = this.#others
      else this.#keys.set(key, (known = { level, lines: 0 }))
    }
    if (++known.lines > this.#lines) return
    this.#log[level](typeof fields === 'function' ? fields() : fields, message)
  }

  /** Ends the interval: reports lines that were left out. */
  report() {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const keys = this.#keys
    if (keys.size === 0) return
    keys.set('other lines', this.#others)
    this.#keys = new Map()
    this.#others = { level: 'warn', lines: 0 }
    const seconds = this.#interval / 1000
    for (const [line, known] of keys) {
      const lines = known.lines - this.#lines
      if (lines > 0) this.#log[known.level]({ line, lines, seconds }, 'more lines were left out')
    }
  }
}
