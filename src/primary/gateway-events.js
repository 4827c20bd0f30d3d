import { EventEmitter } from 'node:events'

/** @import { Worker } from 'node:cluster' */
/** @import { GatewayEvents } from './gateway.js' */
/** @import { PoolObserver } from './pool-observer.js' */

/** The events of a gateway object, from the parts that cause them. */
export class EventSource {
  /** Listeners of the program. */
  emitter = new EventEmitter()
  /** All workers that the gateway has had. @type {WeakSet<Worker>} */
  owned = new WeakSet()

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
      message: (process, message) => next.message(process, message),
    }
  }
}
