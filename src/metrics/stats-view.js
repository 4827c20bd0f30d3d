/** @import { Hello, Snapshot, StatsCommand, StatsMessage } from './schema.js' */

/** Default timeout of a request to the primary. */
const TIMEOUT_MS = 5000
/** A reload waits for all workers. */
const RELOAD_TIMEOUT_MS = 35_000

/**
 * @typedef {{op: 'latest' | 'watch' | 'unwatch' | 'command', id?: number, command?: StatsCommand}} StatsRequest
 *
 * @typedef {object} StatsAnswer of the primary
 * @property {number} [id] of the request; without it, to all watches
 * @property {Snapshot[]} [part]
 * @property {Hello} [hello]
 * @property {Snapshot} [snapshot]
 * @property {string | null} [error]
 * @property {string} [text] for the caller of a command
 */

/**
 * @typedef {{resolve: (answer: any) => void, reject: (error: Error) => void, timer: NodeJS.Timeout,
 *   history: Snapshot[]}} Request
 */

/** `open` after its first message. */
class Watch {
  open = false

  /** @param {(message: StatsMessage) => void} listener */
  constructor(listener) {
    this.listener = listener
  }
}

/**
 * Requests from a worker to the primary over the IPC channel.
 *
 * ```
 * worker                          primary (StatsRelay)
 *   latest()     -- latest  -->
 *                <-- snapshot --
 *   watch()      -- watch   -->
 *                <-- history --   in parts
 *                <-- hello ----
 *                <-- snapshot --   each second, until `unwatch`
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
  #timeout

  /** @param {(message: {type: 'stats'} & StatsRequest) => void} send @param {number} [timeout] ms */
  constructor(send, timeout = TIMEOUT_MS) {
    this.#send = send
    this.#timeout = timeout
  }

  /** The latest; waits for the first. @returns {Promise<Snapshot>} @throws {Error} the primary does not reply */
  async latest() {
    const { snapshot } = await this.#request({ op: 'latest' })
    return snapshot
  }

  /** @param {(message: StatsMessage) => void} listener `hello`, then a snapshot a second @returns ends it */
  watch(listener) {
    const watch = new Watch(listener)
    this.#watches.add(watch)
    this.#open(watch)
    return () => {
      if (this.#watches.delete(watch) && this.#watches.size === 0) this.#post({ op: 'unwatch' })
    }
  }

  /** One line for the caller. @param {StatsCommand} command @throws {Error} */
  async command(command) {
    const timeout = command?.type === 'reload' ? RELOAD_TIMEOUT_MS : this.#timeout
    const { error, text } = await this.#request({ op: 'command', command }, timeout)
    if (error !== null) throw new Error(error)
    return text
  }

  /** @param {any} message */
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
      if (!answer) continue
      if (!this.#watches.has(watch)) {
        // The primary started the watch after the last `unwatch`.
        if (this.#watches.size === 0) this.#post({ op: 'unwatch' })
        return
      }
      watch.open = true
      watch.listener(answer.hello)
      return
    }
  }

  /** @param {StatsRequest} request @param {number} [timeout] ms @returns {Promise<any>} */
  #request(request, timeout = this.#timeout) {
    const id = ++this.#lastId
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#requests.delete(id)
        reject(new Error('the primary process does not respond'))
      }, timeout)
      this.#requests.set(id, { resolve, reject, timer: timer.unref(), history: [] })
      this.#post({ id, ...request })
    })
  }

  /** @param {StatsRequest} message */
  #post(message) {
    this.#send({ type: 'stats', ...message })
  }
}
