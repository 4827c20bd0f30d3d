// The fleet of a folder, second by second, for those who watch it.

import { ask } from './client.js'

/** ms before a controller that is gone is looked for again. */
const AGAIN = 1000

/** @implements {Source} @typedef {import('../status/index.js').Source} Source */
export class ControllerSource {
  #dir
  /** @type {((snapshot: import('../schema.js').FleetSnapshot) => void)[]} */
  #listeners = []
  /** @type {((reason: string) => void)[]} */
  #lost = []
  #abort = new AbortController()
  #watching = false
  /** @type {NodeJS.Timeout | undefined} */
  #timer

  /** @param {string} dir */
  constructor(dir) {
    this.#dir = dir
    this.name = dir
  }

  /** @param {(snapshot: import('../schema.js').FleetSnapshot) => void} listener */
  onSnapshot(listener) {
    this.#listeners.push(listener)
    if (!this.#watching) void this.#watch()
  }

  /** @param {(reason: string) => void} listener */
  onLost(listener) {
    this.#lost.push(listener)
  }

  async #watch() {
    this.#watching = true
    let reason = 'the controller has ended'
    try {
      await ask(
        this.#dir,
        'watch',
        {},
        {
          signal: this.#abort.signal,
          onSnapshot: snapshot => {
            for (const listener of this.#listeners) listener(snapshot)
          },
        },
      )
    } catch (error) {
      reason = error.message
    }
    if (this.#abort.signal.aborted) return
    for (const listener of this.#lost) listener(reason)
    this.#timer = setTimeout(() => void this.#watch(), AGAIN)
  }

  /**
   * @param {string} name `set`, `restart`
   * @param {Record<string, any>} params
   */
  command(name, params) {
    return ask(this.#dir, name, name === 'set' ? { settings: params } : params)
  }

  close() {
    clearTimeout(this.#timer)
    this.#abort.abort()
  }
}
