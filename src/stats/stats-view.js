/**
 * @typedef {import('./schema.js').Snapshot} Snapshot
 * @typedef {import('./schema.js').StatsMessage} StatsMessage
 * @typedef {import('./schema.js').StatsCommand} StatsCommand
 */

/** The primary answers at once, or it hangs, ms. */
const PATIENCE_MS = 5000

/**
 * A question to the primary.
 * @typedef {object} Question
 * @property {(answer: any) => void} resolve
 * @property {(error: Error) => void} reject
 * @property {NodeJS.Timeout} timer
 * @property {Snapshot[]} history as far as it has come
 */

/** A watch, and whether it has been greeted. */
class Watch {
  greeted = false

  /** @param {(message: StatsMessage) => void} listener */
  constructor(listener) {
    this.listener = listener
  }
}

/**
 * What a worker knows of the whole node: it asks the primary, over the channel that both have. `take` is to be called with the
 * messages of type `stats` that come from there.
 *
 * ```
 * worker                          primary (StatsRelay)
 *   latest()     -- latest  -->
 *                <-- snapshot --
 *   watch()      -- watch   -->
 *                <-- history --   in parts
 *                <-- hello ----
 *                <-- snapshot --   each second, as long as one watches
 *   the last one leaves
 *                -- unwatch -->
 * ```
 */
export class StatsView {
  #send
  #lastId = 0
  /** @type {Map<number, Question>} */
  #questions = new Map()
  /** @type {Set<Watch>} */
  #watches = new Set()
  #patience

  /**
   * @param {(message: object) => void} send to the primary
   * @param {number} [patience] ms
   */
  constructor(send, patience = PATIENCE_MS) {
    this.#send = send
    this.#patience = patience
  }

  /**
   * @returns {Promise<Snapshot>} the last one of the node; shortly after its start, the first
   * @throws {Error} when the primary does not answer
   */
  async latest() {
    const { snapshot } = await this.#ask({ op: 'latest' })
    return snapshot
  }

  /**
   * @param {(message: StatsMessage) => void} listener `hello` first, then a snapshot a second
   * @returns {() => void} ends that
   */
  watch(listener) {
    const watch = new Watch(listener)
    this.#watches.add(watch)
    this.#greet(watch)
    return () => {
      if (this.#watches.delete(watch) && this.#watches.size === 0) this.#tell({ op: 'unwatch' })
    }
  }

  /**
   * @param {StatsCommand} command
   * @returns {Promise<void>} when it is done
   * @throws {Error} what the primary says is wrong with it
   */
  async command(command) {
    const { error } = await this.#ask({ op: 'command', command })
    if (error) throw new Error(error)
  }

  /** @param {any} message from the primary */
  take({ id, ...answer }) {
    if (id === undefined) {
      const { snapshot } = answer
      for (const watch of this.#watches) if (watch.greeted) watch.listener({ type: 'snapshot', snapshot })
      return
    }
    const question = this.#questions.get(id)
    if (!question) return
    if (answer.part) {
      question.history.push(...answer.part)
      question.timer.refresh()
      return
    }
    if (answer.hello) answer.hello.history = question.history
    this.#questions.delete(id)
    clearTimeout(question.timer)
    question.resolve(answer)
  }

  /** @param {Watch} watch */
  async #greet(watch) {
    while (this.#watches.has(watch)) {
      const answer = await this.#ask({ op: 'watch' }).catch(() => null)
      // A primary that hangs is asked again: there is nothing without it.
      if (!answer) continue
      if (!this.#watches.has(watch)) {
        // It was not there yet when the last one left.
        if (this.#watches.size === 0) this.#tell({ op: 'unwatch' })
        return
      }
      watch.greeted = true
      watch.listener(answer.hello)
      return
    }
  }

  /**
   * @param {object} question
   * @returns {Promise<any>}
   */
  #ask(question) {
    const id = ++this.#lastId
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#questions.delete(id)
        reject(new Error('the primary process does not answer'))
      }, this.#patience)
      this.#questions.set(id, { resolve, reject, timer: timer.unref(), history: [] })
      this.#tell({ id, ...question })
    })
  }

  /** @param {object} message */
  #tell(message) {
    this.#send({ type: 'stats', ...message })
  }
}
