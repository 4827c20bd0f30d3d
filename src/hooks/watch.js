// Names the handler of the hooks module that blocks the event loop: then the worker itself tells the primary nothing. A
// thread looks once a second into two numbers, which are all that a call writes.

import { Worker } from 'node:worker_threads'

/** Descriptor that leads to the primary. */
const FD = 6
/** The thread holds two numbers and the names. */
const THREAD = Object.freeze({ maxYoungGenerationSizeMb: 1, maxOldGenerationSizeMb: 8, stackSizeMb: 1 })

export class HandlerWatch {
  /** The handler that runs, 0 = none; number of calls. */
  #state = new Int32Array(new SharedArrayBuffer(8))
  /** @type {string[]} */
  #names = []

  /** @param {string} name of a handler, in log lines @returns {number} for `begin` */
  add(name) {
    return this.#names.push(name)
  }

  /** A handler is called. @param {number} handler of `add` @returns {number} for `end`: the one that has called it, or 0 */
  begin(handler) {
    const state = this.#state
    const caller = state[0]
    state[0] = handler
    state[1]++
    return caller
  }

  /** It has returned or thrown. @param {number} caller of `begin` */
  end(caller) {
    this.#state[0] = caller
  }

  /**
   * Starts the thread, which writes to the primary, one JSON text a line: the name of the handler that has not returned
   * for a second, and '' when it has.
   * @param {(error: Error) => void} onError it could not be started, or has ended
   */
  start(onError) {
    const thread = new Worker(new URL('watch-thread.js', import.meta.url), {
      workerData: { fd: FD, state: this.#state, names: this.#names },
      resourceLimits: THREAD,
      execArgv: [],
      env: {},
    })
    thread.on('error', onError)
    thread.unref()
  }
}
