/** What an answer may take, ms. */
const TIMEOUT = 30_000

/** The side of a line that asks: it numbers its questions, and takes the answers out of what comes. */
export class Asker {
  #line
  #last = 0
  /** @type {Map<number, {resolve: (result: any) => void, reject: (error: Error) => void, timer: NodeJS.Timeout}>} */
  #asked = new Map()
  /** @type {(message: any) => void} gets what is no answer */
  onMessage = () => {}
  /** @type {(reason: string) => void} */
  onClose = () => {}

  /** @param {import('./line.js').Line} line whose onMessage and onClose are this one's from now on */
  constructor(line) {
    this.#line = line
    line.onMessage = message => {
      if (message.type === 'answer') this.#onAnswer(message)
      else this.onMessage(message)
    }
    line.onClose = reason => {
      for (const ask of [...this.#asked.keys()]) this.#onAnswer({ ask, error: reason })
      this.onClose(reason)
    }
  }

  /**
   * @param {object} message without its `ask`
   * @param {{timeout?: number}} [options] ms
   * @returns {Promise<any>} the result
   * @throws {Error} what the other side answered, why the line was closed, or that no answer came
   */
  ask(message, { timeout = TIMEOUT } = {}) {
    return new Promise((resolve, reject) => {
      if (this.#line.reason) return reject(new Error(this.#line.reason))
      const ask = ++this.#last
      this.#line.send({ ...message, ask })
      const timer = setTimeout(
        () => this.#onAnswer({ ask, error: `no answer within ${timeout / 1000} s` }),
        timeout,
      )
      this.#asked.set(ask, { resolve, reject, timer })
    })
  }

  /** One that was not asked for, or was answered before, is nobody's. @param {{ask: number, result?: any, error?: any}} answer */
  #onAnswer({ ask, result, error }) {
    const asked = this.#asked.get(ask)
    if (!asked) return
    this.#asked.delete(ask)
    clearTimeout(asked.timer)
    if (error === undefined) asked.resolve(result)
    else asked.reject(new Error(String(error)))
  }

  /** @param {object} message to which no answer is expected */
  send(message) {
    this.#line.send(message)
  }

  /** @returns {Promise<void>} */
  close() {
    return this.#line.close()
  }
}
