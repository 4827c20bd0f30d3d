import { EventEmitter } from 'node:events'

/** @import { Worker } from 'node:cluster' */
/** @import { FromWorker, Handlers, ToWorker } from '../messages.js' */
/** @import { GatewayEvents } from './gateway.js' */
/** @import { PoolObserver, WorkerEnd } from './worker-pool.js' */
/** @import { WorkerProcess } from './worker-process.js' */

/** Events that workers report while the program listens to one of them. */
const OF_CLIENTS = /** @type {const} */ (['connected', 'disconnected', 'dropped'])

/** The events of a gateway object, from the parts that cause them. @implements {PoolObserver} */
export class EventSource {
  /** Listeners of the program. */
  emitter = new EventEmitter()
  /** All workers that the gateway has had. @type {WeakSet<Worker>} */
  owned = new WeakSet()
  /** Whether workers report clients. */
  #reporting = false
  #broadcast

  /** @param {(message: {type: 'reports'} & ToWorker['reports']) => void} broadcast to all workers */
  constructor(broadcast) {
    this.#broadcast = broadcast
    const check = () => setImmediate(() => this.#checkReports())
    this.emitter.on('newListener', check).on('removeListener', check)
  }

  #checkReports() {
    const wanted = OF_CLIENTS.some(event => this.emitter.listenerCount(event) > 0)
    if (wanted === this.#reporting) return
    this.#reporting = wanted
    this.#broadcast({ type: 'reports', on: wanted })
  }

  /** @param {FromWorker['clients']} message */
  #onClients({ reports, dropped }) {
    for (const { event, about } of reports) {
      if (this.emitter.listenerCount(event) > 0) queueMicrotask(() => this.emitter.emit(event, about))
    }
    if (dropped > 0) this.emit('dropped', dropped)
  }

  /**
   * Listeners are called in a turn of their own: what they throw ends nothing half done.
   * @template {keyof GatewayEvents} E @param {E} event @param {GatewayEvents[E]} args
   */
  emit(event, ...args) {
    if (this.emitter.listenerCount(event) > 0) setImmediate(() => this.emitter.emit(event, ...args))
  }

  /**
   * @param {'listening' | 'draining' | 'ended'} state
   * @param {WorkerProcess} process
   * @param {WorkerEnd} [end]
   */
  #emitWorker(state, { slot, pid }, end) {
    this.emit('worker', { state, worker: slot, pid, ...end })
  }

  /** @type {Required<PoolObserver>['starting']} */
  starting({ worker }) {
    this.owned.add(worker)
  }

  /** @type {Required<PoolObserver>['listening']} */
  listening(process) {
    this.#emitWorker('listening', process)
  }

  /** @type {Required<PoolObserver>['draining']} */
  draining(process) {
    this.#emitWorker('draining', process)
  }

  /** @type {Required<PoolObserver>['ended']} */
  ended(process, end) {
    this.#emitWorker('ended', process, end)
  }

  /** @type {Partial<Handlers<FromWorker, [WorkerProcess]>>} */
  messages = {
    clients: message => this.#onClients(message),
    // Before the first client of a new worker.
    'ready-to-listen': (_, process) => {
      if (this.#reporting) process.send({ type: 'reports', on: true })
    },
  }
}
