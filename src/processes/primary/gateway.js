import { ServerApi } from '../../backends/api/server-api.js'
import { didYouMean } from '../../config/nearest.js'

/** @import { EventEmitter } from 'node:events' */
/** @import { Worker } from 'node:cluster' */
/** @import { Send } from '../../backends/api/server-api.js' */

/**
 * @typedef {object} WorkerEvent
 * @property {'listening' | 'draining' | 'ended'} state `draining`: its successor listens, its clients are disconnected
 * @property {number} worker index, 0 ...
 * @property {number} pid
 * @property {string} [reason] of its exit
 * @property {boolean} [died] it ended unexpectedly and is replaced
 *
 * @typedef {object} ClientEvent
 * @property {string} client id
 * @property {string} user '' = anonymous
 * @property {string} transport `websocket`, `sse`, `poll` ...
 *
 * @typedef {object} GatewayEvents
 * @property {[event: ClientEvent]} connected
 * @property {[event: ClientEvent & {code: number, reason: string}]} disconnected
 * @property {[count: number]} dropped client events that workers could not report in time
 * @property {[event: WorkerEvent]} worker
 * @property {[outcome: string]} reloaded the changes, in one line
 * @property {[]} stopping clients are being disconnected
 * @property {[]} stopped
 *
 * @typedef {object} GatewayParts
 * @property {{url: string, slots: {index: number, current: {listening: boolean, pid: number} | null}[]}} pool
 * @property {Send} send calls the server API
 * @property {{emitter: EventEmitter, owned: WeakSet<Worker>}} events
 * @property {() => Promise<void>} stop
 * @property {(config?: Record<string, unknown>) => Promise<string>} reload
 */

const EVENTS = ['connected', 'disconnected', 'dropped', 'worker', 'reloaded', 'stopping', 'stopped']

/**
 * A gateway in an embedding program: the server API as methods, and events.
 *
 * Methods reject with an ApiError. Listeners run in separate event-loop turns: an error thrown by one is an uncaught
 * exception of the program and does not affect the gateway.
 */
export class Gateway extends ServerApi {
  #parts

  /** Created by createGateway(). @param {GatewayParts} parts */
  constructor(parts) {
    super(parts.send)
    this.#parts = parts
  }

  /** Listening address. */
  get url() {
    return this.#parts.pool.url
  }

  /** @returns {{worker: number, pid: number}[]} worker processes that accept connections; worker: index, 0 ... */
  get workers() {
    return this.#parts.pool.slots.flatMap(({ index, current }) =>
      current?.listening ? [{ worker: index, pid: current.pid }] : [],
    )
  }

  /**
   * Disconnects all clients and ends the workers. Later calls return the same promise.
   * @returns {Promise<void>} when the last worker has exited
   */
  stop() {
    return this.#parts.stop()
  }

  /**
   * Rereads the configuration file or applies a new configuration, atomically.
   * @param {Record<string, unknown>} [config] replaces that of createGateway()
   * @returns {Promise<string>} one line: the changed keys, and those that require new workers or a restart
   * @throws {Error} one line; the configuration is unchanged
   */
  reload(config) {
    return this.#parts.reload(config)
  }

  /**
   * Whether a worker of node:cluster belongs to this gateway. Programs with other workers check this before they
   * replace an exited one.
   * @param {Worker} worker
   */
  owns(worker) {
    return this.#parts.events.owned.has(worker)
  }

  /**
   * @template {keyof GatewayEvents} E
   * @param {E} event
   * @param {(...args: GatewayEvents[E]) => void} listener
   * @returns {this}
   * @throws {TypeError} the event is unknown, or the listener is not a function
   */
  on(event, listener) {
    this.#parts.events.emitter.on(known(event), listener)
    return this
  }

  /**
   * As `on`, for the next event only.
   * @template {keyof GatewayEvents} E
   * @param {E} event
   * @param {(...args: GatewayEvents[E]) => void} listener
   * @returns {this}
   */
  once(event, listener) {
    this.#parts.events.emitter.once(known(event), listener)
    return this
  }

  /**
   * Removes a listener.
   * @template {keyof GatewayEvents} E
   * @param {E} event
   * @param {(...args: GatewayEvents[E]) => void} listener
   * @returns {this}
   */
  off(event, listener) {
    this.#parts.events.emitter.off(known(event), listener)
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
