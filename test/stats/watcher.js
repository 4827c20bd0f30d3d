// What a running gateway tells of itself, over its stats socket.

import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

/** @typedef {import('../../src/stats/schema.js').Snapshot} Snapshot */

/** ms that a busy gateway may take until it has read what a client has sent. */
const HEARD = 300
let last = 0

/** @returns {string} a path for `stats.socket`: short, because such a path has little room */
export const socketPath = () => join(tmpdir(), `halley-test-${process.pid}-${++last}.sock`)

export class StatsWatcher {
  /** @type {Snapshot | null} */
  #latest = null
  #wake = () => {}

  /**
   * @param {any} t
   * @param {string} path of the socket of a gateway that runs
   */
  static async open(t, path) {
    const socket = connect(path)
    await once(socket, 'connect')
    const watcher = new StatsWatcher()
    const lines = createInterface({ input: socket })
    // The interface emits the errors of its input again.
    for (const emitter of [socket, lines]) emitter.on('error', () => {})
    lines.on('line', line => {
      const message = JSON.parse(line)
      if (message.type !== 'snapshot') return
      watcher.#latest = message.snapshot
      watcher.#wake()
    })
    t.teardown(() => {
      socket.destroy()
      return rm(path, { force: true })
    })
    return watcher
  }

  /**
   * @param {(snapshot: Snapshot) => boolean} matches
   * @returns {Promise<Snapshot>} the first one that does, from the last one on
   */
  async until(matches) {
    for (;;) {
      if (this.#latest !== null && matches(this.#latest)) return this.#latest
      await new Promise(resolve => {
        this.#wake = () => resolve(undefined)
      })
    }
  }

  /** @returns {Promise<Snapshot>} one that knows everything that clients have done until now: the gateway has had time to hear of it */
  now() {
    const now = Date.now() + HEARD
    return this.until(({ workers }) => workers.every(({ sample }) => sample !== null && sample.time > now))
  }
}
