import { EventEmitter } from 'node:events'
import { ServerApi } from '../api/server-api.js'
import { didYouMean } from '../config/nearest.js'

/** @import { Worker } from 'node:cluster' */
/** @import { PoolObserver } from './pool-observer.js' */
/** @import { PrimaryApi } from './primary-api.js' */
/** @import { WorkerPool } from './worker-pool.js' */

/**
 * @typedef {object} WorkerEvent
 * @property {'listening' | 'draining' | 'ended'} state `draining`: its successor listens, its clients leave it
 * @property {number} worker index, 0 ... @property {number} pid
 * @property {string} [reason] of its end
 * @property {boolean} [died] it has ended although nobody wanted it to; another one starts
 *
 * @typedef {object} GatewayEvents
 * @property {[event: WorkerEvent]} worker
 * @property {[outcome: string]} reloaded one line that says what has changed
 * @property {[]} stopping it lets its clients go
 * @property {[]} stopped
 */

const EVENTS = ['worker', 'reloaded', 'stopping', 'stopped']

/**
 * A gateway in the process of an embedding program: the server API as methods, its events and its end.
 *
 * Methods reject with an ApiError. Listeners are called in turns of their own, so what they throw disturbs nothing of
 * the gateway: it is an uncaught exception of the program.
 */
export class Gateway extends ServerApi {
  #events = new EventEmitter()
  #pool
  #stop
  #reload
  /** @type {WeakSet<Worker>} */
  #workers = new WeakSet()

  /**
   * @param {object} parts @param {WorkerPool} parts.pool @param {PrimaryApi} parts.api
   * @param {() => Promise<void>} parts.stop
   * @param {(config?: Record<string, unknown>) => Promise<string>} parts.reload
   */
  constructor({ pool, api, stop, reload }) {
    super((name, text, repeatable) => api.send(name, text, repeatable))
    this.#pool = pool
    this.#stop = stop
    this.#reload = reload
  }

  /** Address it listens on. */
  get url() {
    return this.#pool.url
  }

  /**
   * Its worker processes that accept connections.
   * @returns {{worker: number, pid: number}[]} worker: index, 0 ...
   */
  get workers() {
    return this.#pool.slots.flatMap(({ index, current }) =>
      current?.listening ? [{ worker: index, pid: current.pid }] : [],
    )
  }

  /**
   * Makes all clients reconnect, and ends the workers. Later calls return the same promise.
   * @returns {Promise<void>} when the last worker has ended
   */
  stop() {
    return this.#stop()
  }

  /**
   * Reads the configuration file again, or takes a new configuration. It is in force whole or not at all.
   * @param {Record<string, unknown>} [config] instead of that given to createGateway
   * @returns {Promise<string>} one line that says what has changed and what takes new workers or a new start
   * @throws {Error} one line; nothing has changed
   */
  reload(config) {
    return this.#reload(config)
  }

  /**
   * Whether a worker of node:cluster is one of this gateway. Its workers are also those of the program's `cluster`: a
   * program that forks workers of its own asks before it replaces one that has exited.
   * @param {Worker} worker
   */
  owns(worker) {
    return this.#workers.has(worker)
  }

  /**
   * @template {keyof GatewayEvents} E
   * @param {E} event @param {(...args: GatewayEvents[E]) => void} listener @returns {this}
   * @throws {TypeError} if there is no such event, or the listener is no function
   */
  on(event, listener) {
    this.#events.on(known(event), listener)
    return this
  }

  /**
   * @template {keyof GatewayEvents} E
   * @param {E} event @param {(...args: GatewayEvents[E]) => void} listener called once @returns {this}
   * @throws {TypeError}
   */
  once(event, listener) {
    this.#events.once(known(event), listener)
    return this
  }

  /**
   * @template {keyof GatewayEvents} E
   * @param {E} event @param {(...args: GatewayEvents[E]) => void} listener removed @returns {this}
   * @throws {TypeError}
   */
  off(event, listener) {
    this.#events.off(known(event), listener)
    return this
  }

  /**
   * For the parts of the gateway.
   * @param {Gateway} gateway
   * @returns {{emit: <E extends keyof GatewayEvents>(event: E, ...args: GatewayEvents[E]) => void,
   *   observer: (next: PoolObserver) => PoolObserver}}
   */
  static inside(gateway) {
    const emit = (/** @type {string} */ event, /** @type {any[]} */ ...args) => gateway.#emit(event, args)
    return { emit, observer: next => gateway.#observer(next) }
  }

  /** @param {string} event @param {any[]} args */
  #emit(event, args) {
    if (this.#events.listenerCount(event) > 0) setImmediate(() => this.#events.emit(event, ...args))
  }

  /** Passes the pool's events on. @param {PoolObserver} next @returns {PoolObserver} */
  #observer(next) {
    return {
      starting: process => {
        this.#workers.add(process.worker)
        next.starting(process)
      },
      listening: process => {
        next.listening(process)
        this.#emit('worker', [{ state: 'listening', worker: process.index, pid: process.pid }])
      },
      draining: process => {
        next.draining(process)
        this.#emit('worker', [{ state: 'draining', worker: process.index, pid: process.pid }])
      },
      ended: (process, end) => {
        next.ended(process, end)
        this.#emit('worker', [{ state: 'ended', worker: process.index, pid: process.pid, ...end }])
      },
      message: (process, message) => next.message(process, message),
    }
  }
}

/** @param {string} event @throws {TypeError} */
function known(event) {
  if (EVENTS.includes(event)) return event
  throw new TypeError(
    `a gateway has no event ${JSON.stringify(event) ?? String(event)}${didYouMean(String(event), EVENTS)}`,
  )
}
