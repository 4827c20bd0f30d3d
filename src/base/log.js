import { closeSync, constants, fstatSync, openSync, statSync, writeSync } from 'node:fs'
import { createRequire } from 'node:module'
import { setTimeout as sleep } from 'node:timers/promises'
import { pino } from 'pino'
import { escapeControls } from './terminal-text.js'

/** @import { Logger } from 'pino' */

/** Loads pino-pretty on demand: it takes 15 ms. */
const require = createRequire(import.meta.url)

const STDOUT = 1
/** Maximum queue size, bytes; more is dropped and counted. */
const MAX_WAITING = 256 * 1024
const RETRY_MS = 250
const DRAIN_MS = 20
const MOVED_MS = 1000

const { O_APPEND, O_CREAT, O_NOCTTY, O_NONBLOCK, O_WRONLY } = constants
/** A pipe or terminal without a reader must not block the event loop. */
const FLAGS = O_WRONLY | O_APPEND | O_NOCTTY | O_NONBLOCK

/** Reasons of write errors, by error code. @type {Record<string, string>} */
const REASONS = {
  EAGAIN: 'no reader',
  EDQUOT: 'disk quota exceeded',
  EMFILE: 'too many open files',
  ENFILE: 'too many open files on this machine',
  ENOSPC: 'the disk is full',
  ENXIO: 'no reader',
  EPIPE: 'no reader',
}

/** @param {NodeJS.ErrnoException} error */
const reasonOf = ({ code = '', message }) => (REASONS[code] ? `${REASONS[code]} (${code})` : message)

/** Reopens a pipe or terminal, whose flags are shared. Node.js makes sockets non-blocking. */
function openStdout() {
  try {
    const stat = fstatSync(STDOUT)
    if (stat.isFIFO() || stat.isCharacterDevice()) return openSync(`/proc/self/fd/${STDOUT}`, FLAGS)
  } catch {
    // No /proc, or a pipe without a reader.
  }
  return STDOUT
}

function terminalFormat() {
  const format = /** @type {any} */ (require('pino-pretty')).prettyFactory({
    translateTime: 'HH:MM:ss.l',
    ignore: 'pid,hostname',
    singleLine: true,
    // Other strings appear as JSON.
    messageFormat: (/** @type {Record<string, any>} */ line, /** @type {string} */ key) =>
      escapeControls(String(line[key] ?? ''), ''),
  })
  // Escape characters are now pino-pretty's colours.
  return (/** @type {string} */ line) => escapeControls(format(line), '\n\x1b')
}

/** @typedef {{lines: number, reason: string, seconds: number}} Outage dropped lines, reason and duration */

/**
 * Log destination: a file or standard output, and a forwarding function. Unlike pino's destinations, it neither blocks
 * nor throws. Queues up to MAX_WAITING unwritten bytes; completes a partly written line first. Replaces a file that was
 * moved or removed (`logrotate`).
 */
export class LogOutput {
  /** Whether lines are written to standard output; a file always gets them. */
  shown = true
  /** @type {((line: string) => void) | null} gets each line as JSON text, with its line feed */
  forward = null
  /** Called after an outage with dropped lines, once the queue is written. @type {(outage: Outage) => void} */
  onRecovered = () => {}
  #path
  #fd = -1
  #dropped = 0
  /** Current write error; null: none. @type {string | null} */
  #error = null
  /** Whether the first attempt to open the file failed permanently. */
  #unusable = false
  /** @type {Buffer[]} lines; the first may be a remainder */
  #waiting = []
  /** Whether the first queued line is partly written. */
  #begun = false
  #bytes = 0
  #droppedBefore = 0
  #failedAt = 0
  /** @type {NodeJS.Timeout | undefined} */
  #timer
  #clock
  #checkedAt = 0
  #format

  /**
   * @param {{file: string}} options of `log` @param {boolean} terminal whether standard output is one
   * @param {() => number} [clock] ms, monotonic
   */
  constructor({ file }, terminal, clock = () => performance.now()) {
    this.#path = file
    this.#clock = clock
    this.#format = file === '' && terminal ? terminalFormat() : null
    try {
      this.#open()
    } catch (error) {
      this.#unusable = !(error.code in REASONS)
      this.#failed(error)
    }
  }

  get state() {
    return { dropped: this.#dropped, error: this.#error }
  }

  /** @throws {Error} if opening the file fails, except on a full disk */
  check() {
    if (this.#unusable) throw new Error(`log.file cannot be opened: ${this.#error}`)
  }

  /** @param {string} line called by pino */
  write(line) {
    if (this.shown || this.#path !== '') this.#add(Buffer.from(this.#format ? this.#format(line) : line))
    this.forward?.(line)
  }

  /** @param {Buffer} line with its line feed */
  #add(line) {
    this.#follow()
    const written = this.#waiting.length > 0 ? 0 : this.#write(line)
    if (written === line.length) return
    if (this.#bytes > 0 && this.#bytes + line.length > MAX_WAITING) {
      this.#dropped++
      return
    }
    if (written > 0) this.#begun = true
    this.#waiting.push(line.subarray(written))
    this.#bytes += line.length - written
    this.#timer ??= setInterval(() => this.#flush(), RETRY_MS).unref()
  }

  /** @param {number} timeout ms @returns {Promise<void>} when all lines are written, or after the timeout */
  async drained(timeout) {
    const deadline = performance.now() + timeout
    while (!this.#flush() && performance.now() < deadline) await sleep(DRAIN_MS)
  }

  #flush() {
    this.#follow()
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
    const reason = this.#error
    if (reason === null) return true
    const lines = this.#dropped - this.#droppedBefore
    this.#error = null
    this.#droppedBefore = this.#dropped
    if (lines > 0)
      this.onRecovered({ lines, reason, seconds: Math.ceil((performance.now() - this.#failedAt) / 1000) })
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

  /** Starts a new file if the open one was moved or removed. */
  #follow() {
    const now = this.#clock()
    if (this.#path === '' || this.#fd === -1 || now - this.#checkedAt < MOVED_MS) return
    this.#checkedAt = now
    try {
      const open = fstatSync(this.#fd)
      if (!open.isFile()) return
      const found = statSync(this.#path, { throwIfNoEntry: false })
      if (found?.ino === open.ino && found.dev === open.dev) return
      const old = this.#fd
      this.#open()
      closeSync(old)
    } catch {
      // Cannot create a file: keep writing to the moved one.
      return
    }
    if (!this.#begun) return
    // The rest of the line would go to the new file.
    this.#bytes -= this.#waiting[0].length
    this.#waiting.shift()
    this.#begun = false
    this.#dropped++
  }

  /** @param {NodeJS.ErrnoException} error */
  #failed(error) {
    if (this.#error === null) this.#failedAt = performance.now()
    this.#error = reasonOf(error)
  }

  close() {
    clearInterval(this.#timer)
    if (this.#fd > STDOUT) closeSync(this.#fd)
    this.#fd = -1
  }
}

/** @param {{level: string}} options of `log` @returns {string} pino's name */
export const levelOf = ({ level }) => (level === 'none' ? 'silent' : level)

/** pino's serializer modifies the error; errors.js freezes its errors. @param {any} error */
const describe = error =>
  pino.stdSerializers.err(error instanceof Error && Object.isFrozen(error) ? Object.create(error) : error)

/**
 * @param {{level: string, file: string}} options of `log` @param {LogOutput} output
 * @param {object} [bindings] fields of every line
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
  output.onRecovered = outage => log.warn(outage, 'log lines dropped: the log was not writable')
  return log
}

/** @typedef {'debug' | 'info' | 'warn' | 'error'} Level */
/** @typedef {Record<Level, (fields: object, message: string, key?: string) => void>} Log a Logger or a LimitedLog */
/** @typedef {(fields: object | (() => object), message: string, key?: string) => void} WriteLimited */

const LIMIT_LINES = 10
const LIMIT_INTERVAL_MS = 60_000
const MAX_KEYS = 200

/**
 * Rate-limited log for lines caused by clients and networks: LIMIT_LINES per minute and key (default: the message). At
 * the end of the minute, one line counts the rest. A `fields` function is called only for written lines.
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
   * @param {Pick<Logger, Level>} log @param {object} [options] @param {number} [options.lines] per key
   * @param {number} [options.interval] ms
   */
  constructor(log, { lines = LIMIT_LINES, interval = LIMIT_INTERVAL_MS } = {}) {
    this.#log = log
    this.#lines = lines
    this.#interval = interval
  }

  /** @type {WriteLimited} */
  debug = (...line) => this.#write('debug', ...line)
  /** @type {WriteLimited} */
  info = (...line) => this.#write('info', ...line)
  /** @type {WriteLimited} */
  warn = (...line) => this.#write('warn', ...line)
  /** @type {WriteLimited} */
  error = (...line) => this.#write('error', ...line)

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
      if (lines > 0)
        this.#log[known.level]({ line, lines, seconds }, 'log lines suppressed by the rate limit')
    }
  }
}
