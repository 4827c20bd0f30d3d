// The worker processes of a gateway, with the embedded broker that they share.

import cluster from 'node:cluster'
import { randomBytes, randomUUID } from 'node:crypto'
import { createServer } from 'node:net'
import { availableParallelism, hostname } from 'node:os'
import { fileURLToPath } from 'node:url'
import { BrokerHost } from '../broker/embedded/host.js'
import { deriveCursorKey } from '../transport/uni-poll/cursor.js'
import { packageVersion } from '../version.js'

/**
 * @typedef {object} WorkerStart what a worker is told first
 * @property {'start'} type
 * @property {any} config
 * @property {number} index 0 ...
 * @property {number} workers how many there are
 * @property {import('../api/context.js').NodeIdentity} node
 * @property {boolean} terminal
 * @property {boolean} quiet whether its log lines go to the primary, and not to standard output
 * @property {string} cursorKey
 *
 * @typedef {import('node:cluster').Worker} Worker
 *
 * @typedef {object} PoolObserver is told what happens to workers, by their index
 * @property {(index: number) => void} starting
 * @property {(index: number) => void} listening
 * @property {(index: number, worker: Worker, end: {reason: string, asked: boolean}) => void} ended `asked`: it was restarted on purpose
 * @property {(index: number, worker: Worker, message: any) => void} heard what the pool itself does not know
 */

/** @type {PoolObserver} */
const NOBODY = Object.freeze({ starting() {}, listening() {}, ended() {}, heard() {} })

/** Descriptors of a worker: standard input and outputs, the channel of `cluster`, the bus. */
const STDIO = /** @type {const} */ (['inherit', 'inherit', 'inherit', 'ipc', 'pipe'])
/** A worker that lived this long was healthy: the next one need not wait, ms. */
const HEALTHY_MS = 10_000
const FIRST_DELAY_MS = 100
const MAX_DELAY_MS = 30_000

/**
 * The place of one worker, taken by one process after another.
 */
class Slot {
  /** @type {Worker | null} */
  worker = null
  startedAt = 0
  /** Deaths in a row. */
  deaths = 0
  listening = false
  open = 0
  reason = ''
  /** Its worker was asked to end, and is to be replaced. */
  restarting = false
  /** @type {any} the configuration that its worker has */
  config = null

  /** @param {number} index */
  constructor(index) {
    this.index = index
  }
}

/**
 * Finds out, before any worker starts, whether the port can be had, and which one it is if any will do. Workers share the
 * port, so two gateways could do so by mistake.
 * @param {string} address
 * @param {number} port
 * @returns {Promise<number>}
 */
function probePort(address, port) {
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once('error', reject)
    probe.listen({ host: address || '0.0.0.0', port, exclusive: true }, () => {
      const { port: found } = /** @type {import('node:net').AddressInfo} */ (probe.address())
      probe.close(() => resolve(found))
    })
  })
}

/**
 * @param {string} address
 * @param {number} port
 * @returns {Promise<number>}
 * @throws {Error} one clear line
 */
async function probe(address, port) {
  try {
    return await probePort(address, port)
  } catch (error) {
    throw new Error(`cannot listen on ${address || '0.0.0.0'}:${port}: ${error.code ?? error.message}`)
  }
}

/**
 * Forks workers, replaces those that die, ends them cleanly.
 */
export class WorkerPool {
  /** Set by the first worker that listens. */
  driver = ''
  /** @type {PoolObserver} to be set before `start` */
  observer = NOBODY
  /** Whether workers that start now leave standard output alone. */
  quiet = false
  #log
  #terminal
  #host
  /** @type {import('../api/context.js').NodeIdentity} */
  node
  /** One for all workers, those that come later included. */
  #cursorKey
  #stopping = false
  #tick
  /** @type {((error?: Error) => void) | null} */
  #started = null

  /**
   * @param {any} config
   * @param {import('pino').Logger} log
   * @param {boolean} terminal
   */
  constructor(config, log, terminal) {
    this.config = config
    this.#log = log
    this.#terminal = terminal
    this.#host = new BrokerHost({ maxBytes: config.engine.memory.max_bytes, log })
    const { http_server, node } = config
    this.node = {
      uid: randomUUID(),
      name: node.name || `${hostname()}_${http_server.port}`,
      version: packageVersion(),
      startedAt: Date.now(),
    }
    this.#cursorKey = deriveCursorKey(config, randomBytes(32).toString('base64'))
    this.slots = Array.from(
      { length: config.workers || availableParallelism() },
      (_, index) => new Slot(index),
    )
    this.#tick = setInterval(() => this.#watch(), 1000)
  }

  /**
   * Finds a port and looks whether the engine can be worked with, but starts nothing yet.
   * @param {any} given the configuration
   * @param {import('pino').Logger} log
   * @param {boolean} terminal whether workers log for a person
   * @returns {Promise<WorkerPool>}
   * @throws {Error} when the port cannot be had, or the engine is out of reach
   */
  static async create(given, log, terminal) {
    const { address, port, internal_address, internal_port } = given.http_server
    const found = await probe(address, port)
    if (internal_port !== 0) await probe(internal_address || address, internal_port)
    if (given.engine.type === 'redis') {
      const { probeRedis } = await import('../broker/redis/probe.js')
      await probeRedis(given.engine.redis, log)
    }
    return new WorkerPool({ ...given, http_server: { ...given.http_server, port: found } }, log, terminal)
  }

  /** Channels with subscribers, of the embedded broker. */
  get channels() {
    return this.#host.subscribed
  }

  /** Where the gateway is. */
  get url() {
    const { address, port } = this.config.http_server
    const host = address || '0.0.0.0'
    return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
  }

  /** Resolves when every worker listens, rejects when one cannot. */
  start() {
    cluster.setupPrimary({
      exec: fileURLToPath(new URL('../worker/main.js', import.meta.url)),
      args: [],
      // A worker's own share of the machine's memory is what it needs, so the flags are handed on as they are.
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
          reject(error)
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
    slot.restarting = false
    this.observer.starting(slot.index)
    const bus = /** @type {import('node:net').Socket} */ (/** @type {any} */ (worker.process.stdio[4]))
    this.#host.attach(bus, String(slot.index), slot.index)
    worker.on('message', message => this.#hear(slot, worker, message))
    worker.on('error', error => this.#log.debug({ err: error, worker: slot.index }, 'worker channel failed'))
    worker.on('exit', (code, signal) => this.#died(slot, worker, code, signal))
  }

  /**
   * @param {Slot} slot
   * @param {Worker} worker
   * @param {any} message
   */
  #hear(slot, worker, message) {
    switch (message.type) {
      case 'ready':
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
        break
      case 'listening':
        slot.listening = true
        this.driver = message.driver
        this.#log.debug({ worker: slot.index, pid: worker.process.pid }, 'worker listens')
        this.#tellReadiness()
        this.observer.listening(slot.index)
        // What was told while it started it has not heard.
        if (slot.config !== this.config) worker.send({ type: 'reload', config: (slot.config = this.config) })
        worker.send({ type: 'elsewhere', count: this.#open - slot.open })
        if (this.slots.every(({ listening }) => listening)) this.#started?.()
        break
      case 'failed':
        slot.reason = message.message
        this.#started?.(new Error(message.message))
        break
      case 'open':
        slot.open = message.count
        this.#tellCounts(slot)
        break
      default:
        this.observer.heard(slot.index, worker, message)
    }
  }

  /** Tells every worker. @param {object} message */
  tell(message) {
    for (const { worker } of this.slots) if (worker?.isConnected()) worker.send(message)
  }

  #tellReadiness() {
    this.tell({ type: 'workers', ready: this.slots.every(({ listening }) => listening) })
  }

  get #open() {
    return this.slots.reduce((sum, { open }) => sum + open, 0)
  }

  /** @param {Slot} changed */
  #tellCounts(changed) {
    const total = this.#open
    for (const slot of this.slots) {
      if (slot !== changed && slot.worker?.isConnected())
        slot.worker.send({ type: 'elsewhere', count: total - slot.open })
    }
  }

  /**
   * Tells one worker.
   * @param {number} index
   * @param {object} message
   * @returns {boolean} whether there is one
   */
  tellOne(index, message) {
    const worker = this.slots[index]?.worker
    if (!worker?.isConnected()) return false
    worker.send(message)
    return true
  }

  /**
   * Ends a worker as a shutdown does, its clients being told to come back, and puts another one in its place.
   * @param {number} index
   * @throws {Error} when there is nothing to restart
   */
  restart(index) {
    const slot = this.slots[index]
    if (!slot) throw new Error(`there is no worker ${index}`)
    const { worker } = slot
    if (!worker || !slot.listening || slot.restarting || this.#stopping)
      throw new Error(`worker ${index} is not up`)
    slot.restarting = true
    worker.send({ type: 'shutdown' })
    // One that hangs does not hear that.
    const late = setTimeout(() => worker.process.kill('SIGKILL'), this.config.shutdown.timeout)
    worker.once('exit', () => clearTimeout(late))
  }

  /**
   * @param {Slot} slot
   * @param {Worker} worker
   * @param {number | null} code
   * @param {string | null} signal
   */
  #died(slot, worker, code, signal) {
    slot.worker = null
    slot.listening = false
    slot.open = 0
    if (this.#stopping) {
      this.observer.ended(slot.index, worker, { reason: 'stopped', asked: true })
      if (this.slots.every(({ worker }) => worker === null)) this.#ended?.()
      return
    }
    this.#tellReadiness()
    this.#tellCounts(slot)
    const asked = slot.restarting
    const reason = asked ? 'restarted' : slot.reason || (signal ? `signal ${signal}` : `exit code ${code}`)
    this.observer.ended(slot.index, worker, { reason, asked })
    if (asked) {
      this.#log.info({ worker: slot.index }, 'worker restarts as asked')
      return this.#fork(slot)
    }
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

  /** @param {any} config whose channel options and token keys are taken over */
  reload(config) {
    const { channel, client } = config
    const { token, subscription_token } = client
    this.config = { ...this.config, channel, client: { ...this.config.client, token, subscription_token } }
    for (const slot of this.slots) {
      if (!slot.listening || !slot.worker?.isConnected()) continue
      slot.config = this.config
      slot.worker.send({ type: 'reload', config: this.config })
    }
  }

  /** @type {(() => void) | null} */
  #ended = null

  /**
   * Clients are told to come back.
   * @returns {Promise<boolean>} when the last worker has ended; false if `shutdown.timeout` had to end one
   */
  stop() {
    this.#stopping = true
    clearInterval(this.#tick)
    let clean = true
    const ended = new Promise(resolve => {
      this.#ended = () => resolve(undefined)
    })
    if (this.slots.every(({ worker }) => worker === null)) return Promise.resolve(clean)
    this.tell({ type: 'shutdown' })
    // One that has not come to listen does not hear that, and has no clients to tell.
    for (const { worker, listening } of this.slots) if (!listening) worker?.process.kill('SIGKILL')
    const late = setTimeout(() => {
      clean = false
      this.kill()
    }, this.config.shutdown.timeout)
    return ended.then(() => {
      clearTimeout(late)
      return clean
    })
  }

  /** Ends the workers at once. */
  kill() {
    for (const { worker } of this.slots) worker?.process.kill('SIGKILL')
  }
}
