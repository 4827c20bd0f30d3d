import { EventEmitter } from 'node:events'

/** @import { Worker } from 'node:cluster' */
/** @import { FromWorker, Handlers, ToWorker } from '../messages.js' */
/** @import { GatewayEvents, WorkerEvent } from './gateway.js' */
/** @import { PoolObserver, WorkerEnd } from './worker-pool.js' */
/** @import { WorkerProcess } from './worker-process.js' */

/** Events reported by workers while the program listens to one of them. */
const OF_CLIENTS = /** @type {const} */ (['connected', 'disconnected', 'dropped'])

/** The events of a gateway object. @implements {PoolObserver} */
export class EventSource {
  emitter = new EventEmitter()
  /** All current and former workers of this gateway. @type {WeakSet<Worker>} */
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

  /**
   * Listeners run in a separate turn: their errors interrupt nothing.
   * @template {keyof GatewayEvents} E @param {E} event @param {GatewayEvents[E]} args
   */
  emit(event, ...args) {
    if (this.emitter.listenerCount(event) > 0) setImmediate(() => this.emitter.emit(event, ...args))
  }

  /** @param {WorkerEvent['state']} state @returns {(process: WorkerProcess, end?: WorkerEnd) => void} */
  #emitsWorker(state) {
    return ({ slot, pid }, end) => this.emit('worker', { state, worker: slot, pid, ...end })
  }

  /** @param {WorkerProcess} process */
  starting({ worker }) {
    this.owned.add(worker)
  }

  listening = this.#emitsWorker('listening')
  draining = this.#emitsWorker('draining')
  ended = this.#emitsWorker('ended')

  /** @type {Partial<Handlers<FromWorker, [WorkerProcess]>>} */
  messages = {
    clients: ({ reports, dropped }) => {
      for (const { event, about } of reports) {
        if (this.emitter.listenerCount(event) > 0) queueMicrotask(() => this.emitter.emit(event, about))
      }
      if (dropped > 0) this.emit('dropped', dropped)
    },
    // Sent before the first client connects to the new worker.
    'ready-to-listen': (_, process) => {
      if (this.#reporting) process.send({ type: 'reports', on: true })
    },
  }
}
