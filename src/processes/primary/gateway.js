import { ServerApi } from '../../backends/api/server-api.js'
import { didYouMean } from '../../config/nearest.js'

/** @import { EventEmitter } from 'node:events' */
/** @import { Worker } from 'node:cluster' */
/** @import { Send } from '../../backends/api/server-api.js' */

/**
 * @typedef {object} WorkerEvent
 * @property {'listening' | 'draining' | 'ended'} state `draining`: its successor listens, its clients leave it
 * @property {number} worker index, 0 ... @property {number} pid
 * @property {string} [reason] of its end
 * @property {boolean} [died] it has ended although nobody wanted it to; another one starts
 *
 * @typedef {object} ClientEvent
 * @property {string} client id @property {string} user '' = anonymous
 * @property {string} transport `websocket`, `sse`, `poll` ...
 *
 * @typedef {object} GatewayEvents
 * @property {[event: ClientEvent]} connected
 * @property {[event: ClientEvent & {code: number, reason: string}]} disconnected
 * @property {[count: number]} dropped events of clients that workers could not report in time
 * @property {[event: WorkerEvent]} worker
 * @property {[outcome: string]} reloaded one line that says what has changed
 * @property {[]} stopping it lets its clients go
 * @property {[]} stopped
 */

/**
 * @typedef {object} GatewayParts
 * @property {{url: string, slots: {index: number, current: {listening: boolean, pid: number} | null}[]}} pool
 * @property {Send} send calls the server API
 * @property {EventEmitter} events @property {WeakSet<Worker>} owned its workers
 * @property {() => Promise<void>} stop
 * @property {(config?: Record<string, unknown>) => Promise<string>} reload
 */

const EVENTS = ['connected', 'disconnected', 'dropped', 'worker', 'reloaded', 'stopping', 'stopped']

/**
 * A gateway in the process of an embedding program: the server API as methods, its events and its end.
 *
 * Methods reject with an ApiError. Listeners are called in turns of their own, so what they throw disturbs nothing of
 * the gateway: it is an uncaught exception of the program.
 */
export class Gateway extends ServerApi {
  #pool
  #events
  #owned
  #stop
  #reload

  /** Programs get one from createGateway. @param {GatewayParts} parts */
  constructor({ pool, send, events, owned, stop, reload }) {
    super(send)
    this.#pool = pool
    this.#events = events
    this.#owned = owned
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
    return this.#owned.has(worker)
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
}

/** @param {string} event @throws {TypeError} */
function known(event) {
  if (EVENTS.includes(event)) return event
  throw new TypeError(
    `a gateway has no event ${JSON.stringify(event) ?? String(event)}${didYouMean(String(event), EVENTS)}`,
  )
}
