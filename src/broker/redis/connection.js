// One connection to a Redis server. ioredis has no public way to cork its stream, to count the commands under way or to fail them
// at once, so `stream`, `commandQueue` and `flushQueue` are used, which are private: package.json pins its exact version. address.js
// overrides private methods of its SentinelConnector, scripts.js a method of its Command. Read them all before you change the version.

import { Redis } from 'ioredis'
import { errors } from '../../errors.js'
import { EncodedCommand, SCRIPTS } from './scripts.js'

/**
 * @typedef {(error: Error | null, reply: any) => void} Done of a command: `reply` as Redis gave it, texts as Buffers. The error is
 *   errors.internal, whatever Redis said: that is in the log
 *
 * @typedef {object} ConnectionEvents
 * @property {(connection: Connection) => void} up commands can be sent from now on; there are no subscriptions
 * @property {(connection: Connection) => void} down what was under way has failed; there are no subscriptions any more
 * @property {(topic: Buffer, message: Buffer) => void} message a publication on a topic that is subscribed to; both are valid only during the call
 * @property {(connection: Connection, reason: string) => void} misplaced the server says that another one is in charge
 */

/** Bytes that may wait for a server that does not read. */
const MAX_BACKLOG = 32 * 1024 * 1024
/** Commands that may wait for their replies. */
const MAX_COMMANDS = 20_000
/** Turns of the event loop that something to be sent may wait for more. */
const MAX_TURNS = 8
/** Errors of one kind are logged once in so many ms. */
const LOG_EVERY = 10_000
/** Further reasons why Redis is away are logged after so many ms, ... */
const LOG_AGAIN_AFTER = 1000
/** ... and not more than so many. */
const MAX_REASONS = 5
const FIRST_RETRY = 25
const MAX_RETRY = 500

/**
 * One connection to one Redis server, for commands and subscriptions alike (RESP3). So replies and publications come in
 * the order in which Redis produced them, and `done` and `message` are called in that order: what a reply tells of a
 * stream is true of exactly the publications that have come before it.
 *
 * What one turn of the event loop sends leaves in one write. A server that does not answer within `io_timeout` counts as
 * gone. Nothing is sent twice: what was under way when the connection was lost has failed, though Redis may have done it.
 */
export class Connection {
  #redis
  #events
  #log
  #up = false
  #closed = false
  /** @type {import('node:stream').Writable | null} */
  #corked = null
  /** @type {Set<() => void>} */
  #flushers = new Set()
  #fresh = false
  /** Turns of the event loop since something was to be sent; 0: there is nothing. */
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
  /** @type {Set<string>} reasons for which it is away, as far as they have been logged */
  #logReasons = new Set()
  #guards = 0
  /** Whether replies have come to commands that they do not belong to. */
  #outOfStep = false
  /** @type {Map<string, number>} what was logged -> when */
  #logged = new Map()

  /**
   * @param {string} name for the log
   * @param {import('ioredis').RedisOptions} options where and how to connect
   * @param {ConnectionEvents} events
   * @param {import('pino').Logger} log
   */
  constructor(name, options, events, log) {
    this.name = name
    this.#events = events
    this.#log = log
    this.#redis = new Redis({
      ...options,
      lazyConnect: true,
      enableOfflineQueue: false,
      // A command that is repeated might be done twice.
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

  /**
   * @param {Buffer} topic
   * @param {Buffer} bytes
   */
  #message(topic, bytes) {
    try {
      this.#events.message(topic, bytes)
    } catch (err) {
      this.#log.error({ err, redis: this.name }, 'a message from redis could not be handled')
    }
  }

  /** Whether commands can be sent. */
  get up() {
    return this.#up && !this.#outOfStep && this.#redis.status === 'ready'
  }

  connect() {
    this.#redis.connect().catch(() => {})
  }

  /** Asks for a sign of life, unless an answer is due anyway. */
  probe() {
    const { commandQueue } = /** @type {any} */ (this.#redis)
    if (this.up && commandQueue.length === 0) this.#issue('ping', [], () => {})
  }

  /** Ends it for good. */
  close() {
    const wasUp = this.#up
    this.#closed = true
    this.#up = false
    this.#redis.disconnect()
    const { flushQueue } = /** @type {any} */ (this.#redis)
    // Those who wait for replies are told now rather than when the connection has ended.
    flushQueue.call(this.#redis, new Error('Connection is closed.'))
    if (wasUp) this.#events.down(this)
  }

  /**
   * Begins again with a new connection.
   * @param {string} reason
   */
  reset(reason) {
    const { stream } = /** @type {any} */ (this.#redis)
    this.#lastError = new Error(reason)
    stream?.destroy()
  }

  /** RESP3 and the scripts, before anybody else uses a new connection. */
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
    this.#corked = null
    this.#outOfStep = false
    if (this.#closed) return
    const reason = this.#lastError?.message ?? 'connection closed'
    if (wasUp || this.#attempts === 0) {
      this.#downSince ||= Date.now()
      this.#log.warn({ redis: this.name, reason }, 'redis is out of reach')
      this.#logReasons = new Set([reason])
    } else this.#logFurther(reason)
    this.#attempts++
    if (wasUp) this.#events.down(this)
  }

  /**
   * It may be back, and not let anybody in: each such reason is told once.
   * @param {string} reason
   */
  #logFurther(reason) {
    // What a connection fails with, rather than what Redis or TLS says, is no news.
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
   * Calls `flush` when a turn of the event loop has scheduled nothing more, or enough turns have passed: a busy loop saves most of
   * its writes, and Redis most of its wake-ups, for one empty poll of an idle one. What it sends leaves in one write.
   * @param {() => void} flush may be scheduled again and again
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
    this.#corked?.uncork()
    this.#corked = null
    this.#turns = 0
    if (this.#flushers.size > 0) this.#beginTurn()
  }

  /**
   * @param {string} name of a command, lower case
   * @param {(string | Buffer | number)[]} args
   * @param {Done} done never called before this returns
   */
  send(name, args, done) {
    if (!this.up || this.#full()) return queueMicrotask(() => done(errors.internal, null))
    this.#issue(name, args, done)
    if (name === 'sunsubscribe') this.#guard()
  }

  /**
   * When a slot moves, a cluster ends its subscriptions by itself, and ioredis takes that for the answer to a SUNSUBSCRIBE that is
   * under way. The real answer then goes to the next command, and each one after that to the next but one: so the next one is this.
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
   * @param {import('./scripts.js').Script} script
   * @param {string[]} keys
   * @param {(string | Buffer | number)[]} args
   * @param {Done} done never called before this returns
   */
  run(script, keys, args, done) {
    if (!this.up || this.#full()) return queueMicrotask(() => done(errors.internal, null))
    this.#run(script, [script.hash, keys.length, ...keys, ...args], done, true)
  }

  /**
   * @param {import('./scripts.js').Script} script
   * @param {any[]} args
   * @param {Done} done
   * @param {boolean} again whether to load the script and try again if Redis has forgotten it
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
    const { stream, commandQueue } = /** @type {any} */ (this.#redis)
    return stream.writableLength > MAX_BACKLOG || commandQueue.length > MAX_COMMANDS
  }

  /**
   * @param {string} name
   * @param {any[]} args
   * @param {Done} done
   */
  #issue(name, args, done) {
    const { stream } = /** @type {any} */ (this.#redis)
    if (this.#corked === null && stream) {
      stream.cork()
      this.#corked = stream
      this.#beginTurn()
    }
    // Of subscriptions ioredis itself looks at the arguments.
    const command = name === 'evalsha' ? new EncodedCommand(name, args) : new Redis.Command(name, args)
    // The promise of a command would be settled after everything that came with the same read.
    command.resolve = reply =>
      this.#outOfStep ? this.#call(done, errors.internal, null) : this.#call(done, null, reply)
    command.reject = error => this.#refused(name, error, done)
    this.#redis.sendCommand(command)
  }

  /**
   * @param {string} name
   * @param {Error} error
   * @param {Done} done
   */
  #refused(name, error, done) {
    if (error.message.startsWith('NOSCRIPT ')) return this.#call(done, error, null)
    // Redis begins each error with a word in capitals; what has another form is a lost connection.
    if (/^[A-Z]+ /.test(error.message)) this.fault(error.message, name)
    this.#call(done, errors.internal, null)
  }

  /**
   * What Redis refuses may mean that it is not in charge (any more).
   * @param {string} message of the error
   * @param {string} name of the command
   */
  fault(message, name) {
    const kind = message.match(/\b(MOVED|ASK|TRYAGAIN|CLUSTERDOWN|READONLY|MASTERDOWN|LOADING)\b/)?.[1] ?? ''
    if (kind === 'READONLY' || kind === 'MASTERDOWN' || kind === 'LOADING') return this.reset(message)
    // A script without keys, which publishes in a slot that is elsewhere, is not told where.
    if (kind !== '' || message.includes('non local key')) return this.#events.misplaced(this, message)
    const now = Date.now()
    const topic = `${name} ${message.slice(0, 20)}`
    if (now - (this.#logged.get(topic) ?? 0) < LOG_EVERY) return
    if (this.#logged.size > 100) this.#logged.clear()
    this.#logged.set(topic, now)
    this.#log.error({ redis: this.name, command: name, error: message }, 'redis refused a command')
  }

  /**
   * @param {Done} done
   * @param {Error | null} error
   * @param {any} reply
   */
  #call(done, error, reply) {
    try {
      done(error, reply)
    } catch (err) {
      this.#log.error({ err, redis: this.name }, 'what followed a reply of redis failed')
    }
  }
}
