// Bus within the primary: a broker for the embedding program.

import { EventEmitter } from 'node:events'
import { LocalBroker } from './client.js'

/** @import { Log } from '../../../base/log.js' */
/** @import { BrokerHost } from './host.js' */

/** One end of an in-process connection: the subset of a socket used by the bus. */
class LoopEnd extends EventEmitter {
  /** @type {LoopEnd | null} */
  peer = null
  destroyed = false
  #paused = false
  /** @type {Buffer[]} received while paused */
  #waiting = []
  #drained = () => this.emit('drain')

  get writableLength() {
    return this.peer === null ? 0 : this.peer.#waiting.reduce((sum, { length }) => sum + length, 0)
  }

  /** @param {Buffer} chunk valid during the call */
  write(chunk) {
    if (this.destroyed || this.peer === null) return
    this.peer.#receive(Buffer.from(chunk))
    // After this write: listeners may write immediately.
    if (this.writableLength === 0) queueMicrotask(this.#drained)
  }

  /** @param {Buffer} chunk */
  #receive(chunk) {
    if (this.#paused) this.#waiting.push(chunk)
    else this.emit('data', chunk)
  }

  pause() {
    this.#paused = true
  }

  resume() {
    this.#paused = false
    while (this.#waiting.length > 0 && !this.#paused) this.emit('data', this.#waiting.shift())
    if (this.#waiting.length === 0) this.peer?.emit('drain')
  }

  destroy() {
    if (this.destroyed) return
    this.destroyed = true
    this.#waiting = []
    this.emit('close')
    this.peer?.destroy()
  }
}

/**
 * A broker for the program in the host's process, without surveys, calls and subscriptions.
 * @param {BrokerHost} host @param {string} node @param {Log} log
 * @returns {LocalBroker & {close: () => void}} `close`: pending requests fail
 */
export function connectWithin(host, node, log) {
  const near = new LoopEnd()
  const far = new LoopEnd()
  near.peer = far
  far.peer = near
  const none = () => {}
  const events = { publication: none, presence: none, lost: none, survey: none, called: none }
  const broker = new LocalBroker(/** @type {any} */ (near), events, node, log, none)
  near.on('data', chunk => broker.receive(chunk))
  host.attach(/** @type {any} */ (far), 'the embedding program', -1, { surveyed: false })
  return Object.assign(broker, { close: () => near.destroy() })
}
