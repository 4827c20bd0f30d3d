/** @import { Snapshot, StatsCommand, StatsMessage } from './schema.js' */

/** The primary answers at once, or it hangs, ms. */
const PATIENCE_MS = 5000

/**
 * A request to the primary.
 * @typedef {object} Request
 * @property {(answer: any) => void} resolve
 * @property {(error: Error) => void} reject
 * @property {NodeJS.Timeout} timer
 * @property {Snapshot[]} history received so far
 */

/** One watching client; `open` once it has had the first message. */
class Watch {
  open = false

  /** @param {(message: StatsMessage) => void} listener */
  constructor(listener) {
    this.listener = listener
  }
}

/**
 * A worker's view of the statistics of the whole node: requests to the primary over the IPC channel. `onMessage` gets the
 * primary's messages of type `stats`.
 *
 * ```
 * worker                          primary (StatsRelay)
 *   latest()     -- latest  -->
 *                <-- snapshot --
 *   watch()      -- watch   -->
 *                <-- history --   in parts
 *                <-- hello ----
 *                <-- snapshot --   each second, while anyone watches
 *   last watch ends
 *                -- unwatch -->
 * ```
 */
export class StatsView {
  #send
  #lastId = 0
  /** @type {Map<number, Request>} */
  #requests = new Map()
  /** @type {Set<Watch>} */
  #watches = new Set()
  #patience

  /** @param {(message: object) => void} send to the primary @param {number} [patience] ms */
  constructor(send, patience = PATIENCE_MS) {
    this.#send = send
    this.#patience = patience
  }

  /**
   * @returns {Promise<Snapshot>} the latest one; just after the start, the first
   * @throws {Error} if the primary does not answer
   */
  async latest() {
    const { snapshot } = await this.#request({ op: 'latest' })
    return snapshot
  }

  /**
   * @param {(message: StatsMessage) => void} listener `hello` first, then a snapshot a second
   * @returns {() => void} ends that
   */
  watch(listener) {
    const watch = new Watch(listener)
    this.#watches.add(watch)
    this.#open(watch)
    return () => {
      if (this.#watches.delete(watch) && this.#watches.size === 0) this.#post({ op: 'unwatch' })
    }
  }

  /**
   * @param {StatsCommand} command
   * @returns {Promise<void>} when it is done
   * @throws {Error} the primary refused it or failed
   */
  async command(command) {
    const { error } = await this.#request({ op: 'command', command })
    if (error) throw new Error(error)
  }

  /** @param {any} message from the primary */
  onMessage({ id, ...answer }) {
    if (id === undefined) {
      const { snapshot } = answer
      for (const watch of this.#watches) if (watch.open) watch.listener({ type: 'snapshot', snapshot })
      return
    }
    const request = this.#requests.get(id)
    if (!request) return
    if (answer.part) {
      request.history.push(...answer.part)
      request.timer.refresh()
      return
    }
    if (answer.hello) answer.hello.history = request.history
    this.#requests.delete(id)
    clearTimeout(request.timer)
    request.resolve(answer)
  }

  /** @param {Watch} watch */
  async #open(watch) {
    while (this.#watches.has(watch)) {
      const answer = await this.#request({ op: 'watch' }).catch(() => null)
      // Keep trying while the primary hangs.
      if (!answer) continue
      if (!this.#watches.has(watch)) {
        // The watch began at the primary only after the last `unwatch`.
        if (this.#watches.size === 0) this.#post({ op: 'unwatch' })
        return
      }
      watch.open = true
      watch.listener(answer.hello)
      return
    }
  }

  /** @param {object} request @returns {Promise<any>} */
  #request(request) {
    const id = ++this.#lastId
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#requests.delete(id)
        reject(new Error('the primary process does not answer'))
      }, this.#patience)
      this.#requests.set(id, { resolve, reject, timer: timer.unref(), history: [] })
      this.#post({ id, ...request })
    })
  }

  /** @param {object} message */
  #post(message) {
    this.#send({ type: 'stats', ...message })
  }
}
