// Detects the hooks module handler that blocks the event loop. A thread reads shared numbers once a second.

import { Worker } from 'node:worker_threads'

/** Descriptor of the pipe to the primary. */
const FD = 6
const THREAD = Object.freeze({ maxYoungGenerationSizeMb: 1, maxOldGenerationSizeMb: 8, stackSizeMb: 1 })
const BEAT_MS = 500

// The shared numbers: running handler (0: none), calls, beats; then the pending promises of each handler (from 1).
const RUNNING = 0
const CALLS = 1
const BEATS = 2
const PROMISES = 2

/**
 * Report of the thread. `runs`: handler running for over a second, '' = none; `waits`: otherwise, if the event loop is
 * blocked, some handlers with pending promises.
 * @typedef {{runs: string, waits: string[]}} Blocks
 */

export class HandlerWatch {
  #state = new Int32Array(new SharedArrayBuffer(0))
  /** @type {string[]} */
  #names = []

  /** Before `start`. @param {string} name of a handler, in log lines @returns {number} for the other methods, from 1 */
  add(name) {
    const handler = this.#names.push(name)
    const bytes = (PROMISES + handler + 1) * Int32Array.BYTES_PER_ELEMENT
    this.#state = new Int32Array(new SharedArrayBuffer(bytes))
    return handler
  }

  /** A handler is called. @param {number} handler @returns {number} for `end`: the calling handler, or 0 */
  begin(handler) {
    const state = this.#state
    const caller = state[RUNNING]
    state[RUNNING] = handler
    state[CALLS]++
    return caller
  }

  /** It has returned or thrown. @param {number} caller of `begin` */
  end(caller) {
    this.#state[RUNNING] = caller
  }

  /** It has returned a promise. @param {number} handler */
  waits(handler) {
    this.#state[PROMISES + handler]++
  }

  /** The promise has settled. @param {number} handler */
  settled(handler) {
    this.#state[PROMISES + handler]--
  }

  /** Starts the thread. It writes changes to the primary as JSON lines. @param {(error: Error) => void} onError */
  start(onError) {
    const state = this.#state
    const thread = new Worker(new URL('watch-thread.js', import.meta.url), {
      workerData: { fd: FD, state, names: this.#names },
      resourceLimits: THREAD,
      execArgv: [],
      env: {},
    })
    thread.on('error', onError)
    thread.unref()
    setInterval(() => state[BEATS]++, BEAT_MS).unref()
  }
}
