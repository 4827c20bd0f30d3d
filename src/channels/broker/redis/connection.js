import { Redis } from 'ioredis'
import { errors } from '../../../base/errors.js'
import { observed, ServerConnector } from './address.js'
import { EncodedCommand, SCRIPTS } from './scripts.js'

/** @import { Socket } from 'node:net' */
/** @import { RedisOptions } from 'ioredis' */
/** @import { Logger } from 'pino' */
/** @import { Script } from './scripts.js' */

/**
 * @typedef {(error: Error | null, reply: any) => void} Done callback of a command: `reply` as from Redis, strings as
 *   Buffers. The error is always errors.internal; Redis errors are logged
 *
 * @typedef {object} ConnectionEvents
 * @property {(connection: Connection) => void} up commands can be sent; there are no subscriptions yet
 * @property {(connection: Connection) => void} down pending commands have failed, subscriptions have ended
 * @property {(topic: Buffer, message: Buffer) => void} message on a subscribed topic; both valid only during the call
 * @property {(connection: Connection, reason: string) => void} misplaced another server owns the slot
 */

/** Maximum bytes queued for a slow server. */
const MAX_BACKLOG = 32 * 1024 * 1024
const MAX_COMMANDS = 20_000
const MAX_TURNS = 8
/** Minimum log interval for errors of one kind (ms). */
const LOG_EVERY = 10_000
/** Further reasons for a lost connection are logged after this time (ms), at most MAX_REASONS of them. */
const LOG_AGAIN_AFTER = 1000
const MAX_REASONS = 5
const FIRST_RETRY = 25
const MAX_RETRY = 500

/**
 * A connection to a Redis server for commands and subscriptions (RESP3). `done` and `message` are called in the order
 * of Redis's replies and publications: the position in a reply covers the publications received before it.
 *
 * Commands of one event-loop turn are sent in one write. If a server does not reply within `io_timeout`, its connection
 * is lost. Commands are never resent: those pending then fail, although Redis may have executed them.
 */
export class Connection {
  #redis
  #events
  #log
  #up = false
  #closed = false
  /** @type {Socket | null} of the last connection */
  #socket = null
  #corked = false
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
  /** Replies no longer match commands. */
  #outOfStep = false
  /** @type {Map<string, number>} logged topic -> time */
  #logged = new Map()

  /**
   * @param {string} name for the log @param {RedisOptions} options
   * @param {ConnectionEvents} events @param {Logger} log
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
      // A resent command might execute twice.
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
    const message = (/** @type {Buffer} */ topic, /** @type {Buffer} */ bytes) => {
      try {
        this.#events.message(topic, bytes)
      } catch (err) {
        this.#log.error({ err, redis: this.name }, 'handling a redis message failed')
      }
    }
    this.#redis.on('messageBuffer', message)
    this.#redis.on('smessageBuffer', message)
  }

  get up() {
    return this.#up && !this.#closed && !this.#outOfStep && this.#redis.status === 'ready'
  }

  connect() {
    this.#redis.connect().catch(() => {})
  }

  close() {
    this.#closed = true
    this.#redis.disconnect()
    // Fails pending commands without waiting for the server to close.
    this.#socket?.destroy()
  }

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
      const outage_ms = Date.now() - this.#downSince
      if (this.#downSince > 0) this.#log.info({ redis: this.name, outage_ms }, 'redis is reachable again')
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
      this.#log.warn({ redis: this.name, reason }, 'redis is unreachable')
      this.#logReasons = new Set([reason])
    } else this.#logFurther(reason)
    this.#attempts++
    if (wasUp) this.#events.down(this)
  }

  /** Logs each new reason once: a restarted server may refuse logins. @param {string} reason */
  #logFurther(reason) {
    // Logs errors of Redis or TLS, not of the network.
    const unreachable = this.#lastError === null || /** @type {any} */ (this.#lastError).syscall !== undefined
    if (unreachable || Date.now() - this.#downSince < LOG_AGAIN_AFTER) return
    if (this.#logReasons.has(reason) || this.#logReasons.size === MAX_REASONS) return
    this.#logReasons.add(reason)
    this.#log.warn({ redis: this.name, reason }, 'redis is still unreachable')
  }

  /** @param {Error} error */
  #failed(error) {
    if (!this.#outOfStep) this.#lastError = error
    this.#log.debug({ err: error, redis: this.name }, 'redis connection failed')
  }

  /**
   * Calls `flush` after an event-loop turn without new flushes, or after MAX_TURNS: fewer writes.
   * @param {() => void} flush its commands are sent in one write; may be scheduled repeatedly
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

  /** @param {string} name lower case @param {(string | Buffer | number)[]} args @param {Done} done called later */
  send(name, args, done) {
    if (!this.up || this.#full()) return queueMicrotask(() => done(errors.internal, null))
    this.#issue(name, args, done)
    if (name === 'sunsubscribe') this.#guard()
  }

  /**
   * When a slot moves, ioredis mistakes the end of its subscriptions for the reply to a pending SUNSUBSCRIBE, which
   * shifts all later replies by one command. A numbered PING after each SUNSUBSCRIBE detects this.
   */
  #guard() {
    const sign = String(++this.#guards)
    this.#issue('ping', [sign], (error, reply) => {
      if (this.#redis.status !== 'ready' || (!error && String(reply) === sign)) return
      this.#outOfStep = true
      this.reset('replies do not match commands')
    })
  }

  /**
   * @param {Script} script @param {string[]} keys @param {(string | Buffer | number)[]} args
   * @param {Done} done not called before this returns
   */
  run(script, keys, args, done) {
    if (!this.up || this.#full()) return queueMicrotask(() => done(errors.internal, null))
    this.#run(script, [script.hash, keys.length, ...keys, ...args], done, true)
  }

  /**
   * @param {Script} script @param {any[]} args @param {Done} done
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
    // ioredis parses the arguments of subscriptions.
    const command = name === 'evalsha' ? new EncodedCommand(name, args) : new Redis.Command(name, args)
    this.#pending++
    // Promises of commands and pipelines would settle only after all other replies of the same read.
    command.resolve = reply => {
      this.#pending--
      if (this.#outOfStep) this.#call(done, errors.internal, null)
      else this.#call(done, null, reply)
    }
    command.reject = error => {
      this.#pending--
      if (error.message.startsWith('NOSCRIPT ')) return this.#call(done, error, null)
      // Redis errors begin with an uppercase word; all others mean a lost connection.
      if (/^[A-Z]+ /.test(error.message)) this.fault(error.message, name)
      this.#call(done, errors.internal, null)
    }
    this.#redis.sendCommand(command)
  }

  /** Handles a Redis error, including foreign slots. @param {string} message @param {string} name command */
  fault(message, name) {
    const kind = message.match(/\b(MOVED|ASK|TRYAGAIN|CLUSTERDOWN|READONLY|MASTERDOWN|LOADING)\b/)?.[1] ?? ''
    if (kind === 'READONLY' || kind === 'MASTERDOWN' || kind === 'LOADING') return this.reset(message)
    // Scripts without keys get no MOVED when publishing in a foreign slot.
    if (kind !== '' || message.includes('non local key')) return this.#events.misplaced(this, message)
    const now = Date.now()
    const topic = `${name} ${message.slice(0, 20)}`
    if (now - (this.#logged.get(topic) ?? 0) < LOG_EVERY) return
    if (this.#logged.size > 100) this.#logged.clear()
    this.#logged.set(topic, now)
    this.#log.error({ redis: this.name, command: name, error: message }, 'redis rejected a command')
  }

  /** @param {Done} done @param {Error | null} error @param {any} reply */
  #call(done, error, reply) {
    try {
      done(error, reply)
    } catch (err) {
      this.#log.error({ err, redis: this.name }, 'redis reply callback failed')
    }
  }
}
