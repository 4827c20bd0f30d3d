// Snapshots of a gateway, from its stats socket.

import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'

/** @typedef {import('../src/metrics/schema.js').Snapshot} Snapshot */

const RETRY_MS = 50

/** A client of the stats socket: one snapshot a second. */
export class Watcher {
  /** All snapshots so far. `at`: performance.now() of the arrival. @type {{at: number, snapshot: Snapshot}[]} */
  received = []
  #path
  #ended = false
  /** @type {import('node:net').Socket | null} */
  #socket = null

  /** @param {string} path of the stats socket */
  constructor(path) {
    this.#path = path
    this.#connect()
  }

  #connect() {
    if (this.#ended) return
    const socket = connect(this.#path)
    this.#socket = socket
    const lines = createInterface({ input: socket })
    // The readline interface re-emits the errors of its input.
    for (const emitter of [socket, lines]) emitter.on('error', () => {})
    // The stats socket opens after the clients' port: the gateway starts its queue process in between.
    socket.once('close', failed => failed && setTimeout(() => this.#connect(), RETRY_MS))
    lines.on('line', line => {
      const message = JSON.parse(line)
      if (message.type === 'snapshot')
        this.received.push({ at: performance.now(), snapshot: message.snapshot })
    })
  }

  /**
   * @param {(snapshot: Snapshot) => boolean} matches
   * @returns {Promise<{at: number, snapshot: Snapshot}>} the first match that arrives from now on; waits without limit
   */
  async next(matches = () => true) {
    for (let from = this.received.length; ; await sleep(1)) {
      for (; from < this.received.length; from++)
        if (matches(this.received[from].snapshot)) return this.received[from]
    }
  }

  end() {
    this.#ended = true
    this.#socket?.destroy()
  }
}

/** @param {import('../src/metrics/schema.js').WorkerView} worker @returns {number} maximum event-loop delay, ms */
export const tickMax = ({ sample }) => sample?.loop.ticks.max ?? 0
