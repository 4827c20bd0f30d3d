// Names the handler of the hooks module that blocks the event loop: then the worker itself tells the primary nothing. A
// thread looks once a second into some numbers, which are all that a call writes.

import { Worker } from 'node:worker_threads'

/** Descriptor that leads to the primary. */
const FD = 6
/** The thread holds the numbers and the names. */
const THREAD = Object.freeze({ maxYoungGenerationSizeMb: 1, maxOldGenerationSizeMb: 8, stackSizeMb: 1 })
/** So often the event loop shows that it runs, ms. */
const BEAT_MS = 500

// The shared numbers: the handler that runs (0: none), calls, beats; then for each handler (from 1 on) its promises.
const RUNNING = 0
const CALLS = 1
const BEATS = 2
const PROMISES = 2

/**
 * @typedef {object} Blocks what the thread tells the primary
 * @property {string} runs the handler that has not returned for a second, '' = none
 * @property {string[]} waits else, if the event loop stands still: some handlers whose promises wait
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

  /** A handler is called. @param {number} handler @returns {number} for `end`: the one that has called it, or 0 */
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

  /**
   * Starts the thread, which writes to the primary, whenever it changes: one Blocks a line, as JSON.
   * @param {(error: Error) => void} onError it could not be started, or has ended
   */
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
