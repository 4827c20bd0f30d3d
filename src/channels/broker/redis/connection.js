import { Redis } from 'ioredis'
import { errors } from '../../../base/errors.js'
import { observed, ServerConnector } from './address.js'
import { EncodedCommand, SCRIPTS } from './scripts.js'

/**
 * @typedef {(error: Error | null, reply: any) => void} Done callback of a command: `reply` as from Redis, texts as
 *   Buffers. The error is always errors.internal; the error of Redis is logged
 *
 * @typedef {object} ConnectionEvents
 * @property {(connection: Connection) => void} up commands can be sent; there are no subscriptions yet
 * @property {(connection: Connection) => void} down pending commands have failed, subscriptions have ended
 * @property {(topic: Buffer, message: Buffer) => void} message on a subscribed topic; both valid only during the call
 * @property {(connection: Connection, reason: string) => void} misplaced another server owns the slot
 */

/** Limit of bytes queued for a server that does not read. */
const MAX_BACKLOG = 32 * 1024 * 1024
/** Limit of pending commands. */
const MAX_COMMANDS = 20_000
/** Turns of the event loop that a write may wait for more. */
const MAX_TURNS = 8
/** Errors of one kind are logged once in this interval (ms). */
const LOG_EVERY = 10_000
/** Further reasons for a lost connection are logged after this time (ms), at most MAX_REASONS of them. */
const LOG_AGAIN_AFTER = 1000
const MAX_REASONS = 5
const FIRST_RETRY = 25
const MAX_RETRY = 500

/**
 * One connection to one Redis server, for commands and subscriptions alike (RESP3). So replies and publications arrive
 * in the order in which Redis produced them, and `done` and `message` are called in that order: the position in a
 * reply covers exactly the publications received before it.
 *
 * Commands of one turn of the event loop leave in one write. A server that does not answer within `io_timeout` counts
 * as lost. Nothing is sent twice: commands pending when the connection is lost fail, though Redis may have executed
 * them.
 */
export class Connection {
  #redis
  #events
  #log
  #up = false
  #closed = false
  /** @type {import('node:net').Socket | null} of the last connection */
  #socket = null
  #corked = false
  /** Commands without a reply. */
  #pending = 0
  /** @type {Set<() => void>} */
  #flushers = new Set()
  #fresh = false
  /** Turns of the event loop since the first queued command; 0: none queued. */
  #turns = 0
  #turn = () => {
    if (this.#fresh && this.#turns < MAX_TURNS) {
      this.#fresh = false
      this.#turns++
      setImmediate(this.#turn)
    } else this.#flush()
  }
  /** @type {Error | null} */
  #lastError = null
  #downSince = 0
  #attempts = 0
  /** @type {Set<string>} reasons already logged for this outage */
  #logReasons = new Set()
  #guards = 0
  /** Whether replies no longer match their commands. */
  #outOfStep = false
  /** @type {Map<string, number>} logged topic -> time */
  #logged = new Map()

  /**
   * @param {string} name for the log
   * @param {import('ioredis').RedisOptions} options where and how to connect
   * @param {ConnectionEvents} events @param {import('pino').Logger} log
   */
  constructor(name, options, events, log) {
    this.name = name
    this.#events = events
    this.#log = log
    const Connector = /** @type {typeof ServerConnector} */ (options.Connector ?? ServerConnector)
    this.#redis = new Redis({
      ...options,
      Connector: observed(Connector, socket => {
        this.#socket = socket
      }),
      lazyConnect: true,
      enableOfflineQueue: false,
      // A repeated command might be executed twice.
      autoResendUnfulfilledCommands: false,
      maxRetriesPerRequest: 0,
      autoResubscribe: false,
      disableClientInfo: true,
      retryStrategy: attempt =>
        Math.min(MAX_RETRY, FIRST_RETRY * 2 ** Math.min(attempt, 10)) * (0.5 + Math.random() / 2),
    })
    this.#redis.on('ready', () => this.#prepare())
    this.#redis.on('close', () => this.#lost())
    this.#redis.on('error', error => this.#failed(error))
    this.#redis.on('moved', () => this.#events.misplaced(this, 'a subscription has moved'))
    const message = (/** @type {Buffer} */ topic, /** @type {Buffer} */ bytes) => this.#message(topic, bytes)
    this.#redis.on('messageBuffer', message)
    this.#redis.on('smessageBuffer', message)
  }

  /** @param {Buffer} topic @param {Buffer} bytes */
  #message(topic, bytes) {
    try {
      this.#events.message(topic, bytes)
    } catch (err) {
      this.#log.error({ err, redis: this.name }, 'a message from redis could not be handled')
    }
  }

  get up() {
    return this.#up && !this.#closed && !this.#outOfStep && this.#redis.status === 'ready'
  }

  connect() {
    this.#redis.connect().catch(() => {})
  }

  /** Ends the connection for good; `down` follows. */
  close() {
    this.#closed = true
    this.#redis.disconnect()
    // Pending commands fail now, not when the server has closed its side.
    this.#socket?.destroy()
  }

  /** Reads nothing until `resume`, or a new connection. */
  pause() {
    this.#socket?.pause()
  }

  resume() {
    this.#socket?.resume()
  }

  /** Reconnects. @param {string} reason */
  reset(reason) {
    this.#lastError = new Error(reason)
    this.#socket?.destroy()
  }

  /** Switches a new connection to RESP3 and loads the scripts, before any other command. */
  #prepare() {
    let missing = SCRIPTS.length + 1
    const done = (/** @type {Error | null} */ error) => {
      if (error)
        return this.reset(`cannot prepare the connection: ${this.#lastError?.message ?? error.message}`)
      if (--missing > 0) return
      this.#up = true
      this.#attempts = 0
      if (this.#downSince > 0)
        this.#log.info({ redis: this.name, away_ms: Date.now() - this.#downSince }, 'redis is back')
      this.#downSince = 0
      this.#lastError = null
      this.#events.up(this)
    }
    this.#issue('hello', ['3'], done)
    for (const { text } of SCRIPTS) this.#issue('script', ['LOAD', text], done)
  }

  #lost() {
    const wasUp = this.#up
    this.#up = false
    this.#corked = false
    this.#outOfStep = false
    if (this.#closed) {
      if (wasUp) this.#events.down(this)
      return
    }
    const reason = this.#lastError?.message ?? 'connection closed'
    if (wasUp || this.#attempts === 0) {
      this.#downSince ||= Date.now()
      this.#log.warn({ redis: this.name, reason }, 'redis is out of reach')
      this.#logReasons = new Set([reason])
    } else this.#logFurther(reason)
    this.#attempts++
    if (wasUp) this.#events.down(this)
  }

  /** Logs each further reason once: the server may be back but refuse logins. @param {string} reason */
  #logFurther(reason) {
    // Errors of Redis or TLS are logged, not those of the network.
    const unreachable = this.#lastError === null || /** @type {any} */ (this.#lastError).syscall !== undefined
    if (unreachable || Date.now() - this.#downSince < LOG_AGAIN_AFTER) return
    if (this.#logReasons.has(reason) || this.#logReasons.size === MAX_REASONS) return
    this.#logReasons.add(reason)
    this.#log.warn({ redis: this.name, reason }, 'redis is still out of reach')
  }

  /** @param {Error} error */
  #failed(error) {
    if (!this.#outOfStep) this.#lastError = error
    this.#log.debug({ err: error, redis: this.name }, 'redis connection failed')
  }

  /**
   * Calls `flush` after a turn of the event loop that scheduled nothing more, or after MAX_TURNS: this saves a busy
   * loop most of its writes and Redis most of its wake-ups, for one empty poll of an idle loop. Its commands leave in
   * one write.
   * @param {() => void} flush may be scheduled repeatedly
   */
  schedule(flush) {
    this.#flushers.add(flush)
    this.#fresh = true
    this.#beginTurn()
  }

  #beginTurn() {
    if (this.#turns > 0) return
    this.#turns = 1
    setImmediate(this.#turn)
  }

  #flush() {
    if (this.#flushers.size > 0) {
      const flushers = this.#flushers
      this.#flushers = new Set()
      for (const flush of flushers) flush()
    }
    if (this.#corked) this.#socket?.uncork()
    this.#corked = false
    this.#turns = 0
    if (this.#flushers.size > 0) this.#beginTurn()
  }

  /**
   * @param {string} name command, lower case
   * @param {(string | Buffer | number)[]} args @param {Done} done never called before this returns
   */
  send(name, args, done) {
    if (!this.up || this.#full()) return queueMicrotask(() => done(errors.internal, null))
    this.#issue(name, args, done)
    if (name === 'sunsubscribe') this.#guard()
  }

  /**
   * When a slot moves, a cluster ends its subscriptions, and ioredis mistakes that for the reply to a pending
   * SUNSUBSCRIBE. From then on every reply goes to the next command. A numbered PING after each SUNSUBSCRIBE detects
   * this.
   */
  #guard() {
    const sign = String(++this.#guards)
    this.#issue('ping', [sign], (error, reply) => {
      if (this.#redis.status !== 'ready' || (!error && String(reply) === sign)) return
      this.#outOfStep = true
      this.reset('replies came out of step')
    })
  }

  /**
   * @param {import('./scripts.js').Script} script @param {string[]} keys @param {(string | Buffer | number)[]} args
   * @param {Done} done never called before this returns
   */
  run(script, keys, args, done) {
    if (!this.up || this.#full()) return queueMicrotask(() => done(errors.internal, null))
    this.#run(script, [script.hash, keys.length, ...keys, ...args], done, true)
  }

  /**
   * @param {import('./scripts.js').Script} script @param {any[]} args @param {Done} done
   * @param {boolean} again reload the script and retry if Redis has lost it
   */
  #run(script, args, done, again) {
    this.#issue('evalsha', args, (error, reply) => {
      if (!again || error?.message.startsWith('NOSCRIPT') !== true)
        return done(error && errors.internal, reply)
      if (!this.up) return done(errors.internal, null)
      this.#issue('script', ['LOAD', script.text], () => {})
      this.#run(script, args, done, false)
    })
  }

  #full() {
    return (this.#socket?.writableLength ?? 0) > MAX_BACKLOG || this.#pending > MAX_COMMANDS
  }

  /** @param {string} name @param {any[]} args @param {Done} done */
  #issue(name, args, done) {
    if (!this.#corked && this.#socket) {
      this.#socket.cork()
      this.#corked = true
      this.#beginTurn()
    }
    // ioredis reads the arguments of subscriptions itself.
    const command = name === 'evalsha' ? new EncodedCommand(name, args) : new Redis.Command(name, args)
    this.#pending++
    // A command's promise, as that of a pipeline, would settle only after all other replies of the same read.
    command.resolve = reply => {
      this.#pending--
      if (this.#outOfStep) this.#call(done, errors.internal, null)
      else this.#call(done, null, reply)
    }
    command.reject = error => {
      this.#pending--
      this.#refused(name, error, done)
    }
    this.#redis.sendCommand(command)
  }

  /** @param {string} name @param {Error} error @param {Done} done */
  #refused(name, error, done) {
    if (error.message.startsWith('NOSCRIPT ')) return this.#call(done, error, null)
    // Errors of Redis begin with a word in capitals; all others mean a lost connection.
    if (/^[A-Z]+ /.test(error.message)) this.fault(error.message, name)
    this.#call(done, errors.internal, null)
  }

  /** Handles an error of Redis, maybe a foreign slot. @param {string} message @param {string} name command */
  fault(message, name) {
    const kind = message.match(/\b(MOVED|ASK|TRYAGAIN|CLUSTERDOWN|READONLY|MASTERDOWN|LOADING)\b/)?.[1] ?? ''
    if (kind === 'READONLY' || kind === 'MASTERDOWN' || kind === 'LOADING') return this.reset(message)
    // A script without keys that publishes in a foreign slot gets no MOVED.
    if (kind !== '' || message.includes('non local key')) return this.#events.misplaced(this, message)
    const now = Date.now()
    const topic = `${name} ${message.slice(0, 20)}`
    if (now - (this.#logged.get(topic) ?? 0) < LOG_EVERY) return
    if (this.#logged.size > 100) this.#logged.clear()
    this.#logged.set(topic, now)
    this.#log.error({ redis: this.name, command: name, error: message }, 'redis refused a command')
  }

  /** @param {Done} done @param {Error | null} error @param {any} reply */
  #call(done, error, reply) {
    try {
      done(error, reply)
    } catch (err) {
      this.#log.error({ err, redis: this.name }, 'callback of a redis reply failed')
    }
  }
}
