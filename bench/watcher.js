import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'

/** @typedef {import('../src/stats/schema.js').Snapshot} Snapshot */

/** A client of the stats socket. */
export class Watcher {
  /** @type {{at: number, snapshot: Snapshot}[]} */
  received = []
  #socket

  /** @param {string} path */
  constructor(path) {
    this.#socket = connect(path)
    const lines = createInterface({ input: this.#socket })
    // The readline interface re-emits the errors of its input.
    for (const emitter of [this.#socket, lines]) emitter.on('error', () => {})
    lines.on('line', line => {
      const message = JSON.parse(line)
      if (message.type === 'snapshot')
        this.received.push({ at: performance.now(), snapshot: message.snapshot })
    })
  }

  /**
   * @param {(snapshot: Snapshot) => boolean} matches
   * @returns {Promise<{at: number, snapshot: Snapshot}>} the first match from now on; `at`: performance.now() of its
   *   arrival
   */
  async next(matches = () => true) {
    for (let from = this.received.length; ; await sleep(1)) {
      for (; from < this.received.length; from++)
        if (matches(this.received[from].snapshot)) return this.received[from]
    }
  }

  end() {
    this.#socket.destroy()
  }
}

/** @param {import('../src/stats/schema.js').WorkerView} worker @returns {number} ms */
export const tickMax = ({ sample }) => sample?.loop.ticks.max ?? 0
