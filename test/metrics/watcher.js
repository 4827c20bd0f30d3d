// What a running gateway tells of itself, over its stats socket.

import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { within } from '../kit/wait.js'

/** @typedef {import('../../src/metrics/schema.js').Snapshot} Snapshot */

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
  until(matches) {
    return within(this.#until(matches), () => `a snapshot where ${matches}`)
  }

  /** @param {(snapshot: Snapshot) => boolean} matches @returns {Promise<Snapshot>} */
  async #until(matches) {
    for (;;) {
      if (this.#latest !== null && matches(this.#latest)) return this.#latest
      await new Promise(resolve => {
        this.#wake = () => resolve(undefined)
      })
    }
  }

  /**
   * A worker that was held up makes the sample that is due before it reads what clients have sent meanwhile. So this
   * waits for the third sample of each from now on.
   * @returns {Promise<Snapshot>} one that knows everything that clients have done until now
   */
  now() {
    /** @type {Map<number, number[]>} times of each worker's samples */
    const times = new Map()
    const begin = Date.now()
    return this.until(({ workers }) => {
      for (const { index, sample } of workers) {
        const known = times.get(index) ?? []
        if (sample && sample.time > (known.at(-1) ?? begin)) times.set(index, [...known, sample.time])
      }
      return workers.every(({ index }) => (times.get(index)?.length ?? 0) >= 3)
    })
  }
}
