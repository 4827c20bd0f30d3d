// The worker processes of a gateway and the embedded broker that they share.

import cluster from 'node:cluster'
import { randomBytes, randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { fileURLToPath } from 'node:url'
import { BrokerHost } from '../broker/embedded/host.js'
import { checkEngine } from '../broker/index.js'
import { withChanges } from '../config/changes.js'
import { defaultWorkers } from '../stats/control-groups.js'
import { deriveCursorKey } from '../transport/uni-poll/cursor.js'
import { packageVersion } from '../version.js'
import { probe } from './address.js'
import { ConfigSwitch } from './config-switch.js'
import { Slot } from './slot.js'

/** @import { Worker } from 'node:cluster' */
/** @import { Socket } from 'node:net' */
/** @import { Logger } from 'pino' */
/** @import { NodeIdentity } from '../api/context.js' */

/**
 * @typedef {object} WorkerStart the first message to a worker
 * @property {'start'} type
 * @property {any} config
 * @property {number} index 0 ...
 * @property {number} workers
 * @property {NodeIdentity} node
 * @property {boolean} terminal
 * @property {boolean} quiet log lines go to the primary, not to standard output
 * @property {string} cursorKey
 *
 *
 * @typedef {object} PoolObserver receives worker events, by index
 * @property {(index: number) => void} starting
 * @property {(index: number) => void} listening
 * @property {(index: number, worker: Worker, end: {reason: string, requested: boolean}) => void} ended `requested`:
 *   restarted or stopped on purpose
 * @property {(index: number, worker: Worker, message: any) => void} message of a type unknown to the pool
 */

/** @type {PoolObserver} */
const NO_OBSERVER = Object.freeze({ starting() {}, listening() {}, ended() {}, message() {} })

/** Descriptors of a worker: standard streams, the channel of `cluster`, the bus. */
const STDIO = /** @type {const} */ (['inherit', 'inherit', 'inherit', 'ipc', 'pipe'])
/** A worker that lived this long is replaced without delay, ms. */
const HEALTHY_MS = 10_000
const FIRST_DELAY_MS = 100
const MAX_DELAY_MS = 30_000

/** Forks the workers, replaces dead ones, drains and ends them. */
export class WorkerPool {
  /** Name of the socket server: uws or node; known once a worker listens. */
  driver = ''
  /** @type {PoolObserver} set it before `start` */
  observer = NO_OBSERVER
  /** Whether new workers start without log lines on standard output. */
  quiet = false
  #log
  #terminal
  #host
  /** @type {NodeIdentity} */
  node
  /** Shared by all workers, also later ones. */
  #cursorKey
  /** Used if no secret is configured. */
  #randomKey = randomBytes(32).toString('base64')
  #switch = new ConfigSwitch(() =>
    this.slots.filter(({ config, worker }) => config !== null && worker !== null),
  )
  #stopping = false
  #tick
  /** @type {((error?: Error) => void) | null} */
  #started = null

  /** @param {any} config @param {Logger} log @param {boolean} terminal */
  constructor(config, log, terminal) {
    this.config = config
    this.#log = log
    this.#terminal = terminal
    const { type, memory } = config.engine
    const snapshotFile = type === 'memory' ? memory.snapshot_file : ''
    this.#host = new BrokerHost({ maxBytes: memory.max_bytes, snapshotFile, log })
    const { http_server, node } = config
    this.node = {
      uid: randomUUID(),
      name: node.name || `${hostname()}_${http_server.port}`,
      version: packageVersion(),
      startedAt: Date.now(),
    }
    this.#cursorKey = deriveCursorKey(config, this.#randomKey)
    this.slots = Array.from({ length: config.workers || defaultWorkers() }, (_, index) => new Slot(index))
    this.#tick = setInterval(() => this.#watch(), 1000)
  }

  /**
   * Checks port and engine, and takes the last run's snapshot over; starts nothing yet.
   * @param {any} given @param {Logger} log
   * @param {boolean} terminal whether workers format log lines for a terminal
   * @returns {Promise<WorkerPool>} @throws {Error} if the port is taken, the engine cannot be reached or the snapshot cannot
   *   be replaced
   */
  static async create(given, log, terminal) {
    const { address, port, internal_address, internal_port } = given.http_server
    const found = await probe(address, port)
    if (internal_port !== 0) await probe(internal_address || address, internal_port)
    await checkEngine(given, log)
    const pool = new WorkerPool(
      { ...given, http_server: { ...given.http_server, port: found } },
      log,
      terminal,
    )
    try {
      await pool.#host.restore()
    } catch (error) {
      clearInterval(pool.#tick)
      throw error
    }
    return pool
  }

  /** Channels of the embedded broker with subscribers. */
  get channels() {
    return this.#host.subscribed
  }

  /** Public address. */
  get url() {
    const { address, port } = this.config.http_server
    const host = address || '0.0.0.0'
    return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
  }

  /** Resolves when every worker listens; rejects if one fails to start. */
  start() {
    cluster.setupPrimary({
      exec: fileURLToPath(new URL('../worker/main.js', import.meta.url)),
      args: [],
      // Each worker has its own heap, so heap flags apply unchanged.
      execArgv: process.execArgv,
      stdio: [...STDIO],
    })
    return new Promise((resolve, reject) => {
      this.#started = error => {
        this.#started = null
        if (error) {
          clearInterval(this.#tick)
          this.#stopping = true
          for (const { worker } of this.slots) worker?.process.kill('SIGKILL')
          // The snapshot that was taken over is for the next start.
          this.#host.end().then(() => reject(error))
        } else resolve(undefined)
      }
      for (const slot of this.slots) this.#fork(slot)
    })
  }

  /** @param {Slot} slot */
  #fork(slot) {
    const worker = cluster.fork()
    slot.worker = worker
    slot.startedAt = Date.now()
    slot.reason = ''
    this.observer.starting(slot.index)
    const bus = /** @type {Socket} */ (/** @type {any} */ (worker.process.stdio[4]))
    this.#host.attach(bus, String(slot.index), slot.index)
    worker.on('message', message => this.#onMessage(slot, worker, message))
    worker.on('error', error => this.#log.debug({ err: error, worker: slot.index }, 'worker channel failed'))
    worker.on('exit', (code, signal) => this.#onExit(slot, worker, code, signal))
  }

  /** @param {Slot} slot @param {Worker} worker @param {any} message */
  #onMessage(slot, worker, message) {
    switch (message.type) {
      case 'ready':
        // Not in the middle of a switch, whose outcome it would miss.
        this.#switch.idle.then(() => this.#sendStart(slot, worker))
        break
      case 'switched':
        this.#switch.onMessage(slot, message)
        break
      case 'listening':
        slot.listening = true
        slot.restarting = false
        slot.isUp()
        this.driver = message.driver
        this.#log.debug({ worker: slot.index, pid: worker.process.pid }, 'worker listens')
        this.#sendReadiness()
        this.observer.listening(slot.index)
        // It missed messages sent while it started.
        worker.send({ type: 'elsewhere', count: this.#open - slot.open })
        if (this.slots.every(({ listening }) => listening)) this.#started?.()
        break
      case 'failed':
        slot.reason = message.message
        this.#started?.(new Error(message.message))
        break
      case 'open':
        slot.open = message.count
        this.#sendCounts(slot)
        break
      default:
        this.observer.message(slot.index, worker, message)
    }
  }

  /** @param {Slot} slot @param {Worker} worker */
  #sendStart(slot, worker) {
    if (!worker.isConnected()) return
    slot.config = this.config
    worker.send({
      type: 'start',
      config: slot.config,
      index: slot.index,
      workers: this.slots.length,
      node: this.node,
      terminal: this.#terminal,
      quiet: this.quiet,
      cursorKey: this.#cursorKey,
    })
  }

  /** To all workers. @param {object} message */
  broadcast(message) {
    for (const { worker } of this.slots) if (worker?.isConnected()) worker.send(message)
  }

  #sendReadiness() {
    this.broadcast({ type: 'workers', ready: this.slots.every(({ listening }) => listening) })
  }

  get #open() {
    return this.slots.reduce((sum, { open }) => sum + open, 0)
  }

  /** @param {Slot} changed */
  #sendCounts(changed) {
    const total = this.#open
    for (const slot of this.slots) {
      if (slot !== changed && slot.worker?.isConnected())
        slot.worker.send({ type: 'elsewhere', count: total - slot.open })
    }
  }

  /** @param {number} index @param {object} message @returns {boolean} false if that worker is not running */
  sendTo(index, message) {
    const worker = this.slots[index]?.worker
    if (!worker?.isConnected()) return false
    worker.send(message)
    return true
  }

  /**
   * Replaces a worker. Its clients must reconnect, as on shutdown. Repeated until the new worker listens, the request
   * has no effect: browsers repeat a POST whose connection ended with its worker.
   * @param {number} index @throws {Error} if there is no such worker, or it is not up
   */
  restart(index) {
    const slot = this.slots[index]
    if (!slot) throw new Error(`no worker has index ${index}`)
    if (slot.restarting && !this.#stopping) return
    const { worker } = slot
    if (!worker || !slot.listening || this.#stopping) throw new Error(`worker ${index} is not up`)
    slot.restarting = true
    worker.send({ type: 'shutdown' })
    // A hanging worker does not read the message.
    const late = setTimeout(() => worker.process.kill('SIGKILL'), this.config.shutdown.timeout)
    worker.once('exit', () => clearTimeout(late))
  }

  /** @param {Slot} slot @param {Worker} worker @param {number | null} code @param {string | null} signal */
  #onExit(slot, worker, code, signal) {
    const requested = slot.restarting && slot.listening
    slot.worker = null
    slot.config = null
    this.#switch.ended(slot)
    slot.listening = false
    slot.open = 0
    if (this.#stopping) {
      this.observer.ended(slot.index, worker, { reason: 'stopped', requested: true })
      if (this.slots.every(({ worker }) => worker === null)) this.#ended?.()
      return
    }
    this.#sendReadiness()
    this.#sendCounts(slot)
    const reason = requested
      ? 'restarted'
      : slot.reason || (signal ? `signal ${signal}` : `exit code ${code}`)
    this.observer.ended(slot.index, worker, { reason, requested })
    if (requested) {
      this.#log.info({ worker: slot.index }, 'worker restarts on request')
      return this.#fork(slot)
    }
    slot.restarting = false
    const lived = Date.now() - slot.startedAt
    slot.deaths = lived >= HEALTHY_MS ? 1 : slot.deaths + 1
    const delay = slot.deaths === 1 ? 0 : Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** (slot.deaths - 2))
    this.#log.error(
      { worker: slot.index, reason, lived_ms: lived, deaths: slot.deaths, restart_in_ms: delay },
      'worker died',
    )
    if (this.#started) return this.#started(new Error(`a worker died while starting: ${reason}`))
    setTimeout(() => {
      if (!this.#stopping) this.#fork(slot)
    }, delay)
  }

  #watch() {
    for (const name of this.#host.tick()) {
      const slot = this.slots[Number(name)]
      if (!slot.worker) continue
      slot.reason = 'stuck: it did not read from the broker'
      slot.worker.process.kill('SIGKILL')
    }
  }

  /** Whether the gateway ends. */
  get stopping() {
    return this.#stopping
  }

  /**
   * Switches all workers to the live options of a configuration, at the same moment. Later workers start with all of it.
   * @param {any} next
   * @returns {Promise<void>} when all workers use it
   * @throws {Error} if a worker cannot use it: nothing has changed
   */
  applyConfig(next) {
    const rotated = next.uni_poll.cursor_secret_key !== this.config.uni_poll.cursor_secret_key
    const cursorKey = rotated ? deriveCursorKey(next, this.#randomKey) : this.#cursorKey
    return this.#switch.run(
      // Each keeps the values with which it has started for what takes a new worker.
      ({ config }) => ({ config: withChanges(config, next, ['live']), cursorKey }),
      () => {
        if (this.#stopping) throw new Error('the gateway is shutting down')
        this.config = next
        this.#cursorKey = cursorKey
      },
    )
  }

  /**
   * Replaces all workers, one after another.
   * @param {string} reason for the log @returns {Promise<boolean>}
   */
  async rollingRestart(reason) {
    this.#log.info({ reason }, 'all workers are being replaced, one after another')
    for (const slot of this.slots) {
      await slot.up()
      if (this.#stopping) return false
      this.restart(slot.index)
      await slot.up()
    }
    return !this.#stopping
  }

  /** @type {(() => void) | null} */
  #ended = null

  /**
   * Disconnects the clients, which reconnect, ends the workers and writes the snapshot.
   * @returns {Promise<boolean>} when that is done; false if one was killed after `shutdown.timeout`
   */
  stop() {
    this.#stopping = true
    for (const slot of this.slots) slot.isUp()
    clearInterval(this.#tick)
    let clean = true
    const ended = new Promise(resolve => {
      this.#ended = () => resolve(undefined)
    })
    if (this.slots.every(({ worker }) => worker === null)) return this.#host.end().then(() => clean)
    this.broadcast({ type: 'shutdown' })
    // A worker that does not listen yet has no clients: kill it.
    for (const { worker, listening } of this.slots) if (!listening) worker?.process.kill('SIGKILL')
    const late = setTimeout(() => {
      clean = false
      this.kill()
    }, this.config.shutdown.timeout)
    return ended.then(async () => {
      clearTimeout(late)
      await this.#host.end()
      return clean
    })
  }

  kill() {
    for (const { worker } of this.slots) worker?.process.kill('SIGKILL')
  }
}
