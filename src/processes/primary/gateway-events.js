import { EventEmitter } from 'node:events'

/** @import { Worker } from 'node:cluster' */
/** @import { ClientReport } from '../worker/client-reports.js' */
/** @import { GatewayEvents } from './gateway.js' */
/** @import { PoolObserver } from './pool-observer.js' */

/** Events that workers report while the program listens to one of them. */
const OF_CLIENTS = /** @type {const} */ (['connected', 'disconnected', 'dropped'])

/** The events of a gateway object, from the parts that cause them. */
export class EventSource {
  /** Listeners of the program. */
  emitter = new EventEmitter()
  /** All workers that the gateway has had. @type {WeakSet<Worker>} */
  owned = new WeakSet()
  /** Whether workers report clients. */
  #reporting = false
  #broadcast

  /** @param {(message: {type: 'reports', on: boolean}) => void} broadcast to all workers */
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

  /** @param {{reports: ClientReport[], dropped: number}} message of a worker */
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

  /** @param {PoolObserver} next is told, too @returns {PoolObserver} */
  observer(next) {
    return {
      starting: process => {
        this.owned.add(process.worker)
        next.starting(process)
      },
      listening: process => {
        next.listening(process)
        this.emit('worker', { state: 'listening', worker: process.index, pid: process.pid })
      },
      draining: process => {
        next.draining(process)
        this.emit('worker', { state: 'draining', worker: process.index, pid: process.pid })
      },
      ended: (process, end) => {
        next.ended(process, end)
        this.emit('worker', { state: 'ended', worker: process.index, pid: process.pid, ...end })
      },
      message: (process, message) => {
        if (message.type === 'clients') this.#onClients(message)
        // Before the first client of a new worker.
        if (message.type === 'ready-to-listen' && this.#reporting) process.send({ type: 'reports', on: true })
        next.message(process, message)
      },
    }
  }
}
