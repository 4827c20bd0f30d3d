// One process with an engine, as its parent sees it: it is asked by number, and answers by that number.
//
//   parent -> {id, method, params}
//   engine -> {id, result} | {id, error}, and {fault: text} before it dies of an error

/** A process that was asked ended before it answered. */
export class ProcessEnded extends Error {}

export class EngineProcess {
  #child
  #last = 0
  /** @type {Map<number, {resolve: (result: any) => void, reject: (error: Error) => void}>} */
  #asked = new Map()
  /** What it said before it died. */
  fault = ''
  /** @type {Promise<string>} why it ended; after all that it has said */
  ended

  /**
   * @param {() => import('node:child_process').ChildProcess} fork
   * @param {object} launch of the engine, see serveEngine()
   */
  constructor(fork, launch) {
    const child = fork()
    this.#child = child
    this.ended = new Promise(resolve => {
      child.on('message', message => this.#onMessage(/** @type {any} */ (message)))
      // One that was never there does not close.
      child.on('error', error => child.pid ?? this.#end(error.message, resolve))
      child.on('close', (code, signal) => this.#end(signal ?? `exit code ${code}`, resolve))
    })
    this.#send(launch)
  }

  get pid() {
    return this.#child.pid
  }

  /** That it could not be told is known by its end. @param {object} message */
  #send(message) {
    this.#child.send(message, () => {})
  }

  /** @param {{id: number, result?: any, error?: string} | {fault: string}} message */
  #onMessage(message) {
    if ('fault' in message) {
      this.fault = message.fault
      return
    }
    const { id, result, error } = message
    const asked = this.#asked.get(id)
    this.#asked.delete(id)
    if (error === undefined) asked?.resolve(result)
    else asked?.reject(new Error(error))
  }

  /** @param {string} why @param {(why: string) => void} resolve */
  #end(why, resolve) {
    const text = this.fault || why
    for (const { reject } of this.#asked.values()) reject(new ProcessEnded(text))
    this.#asked.clear()
    resolve(text)
  }

  /**
   * @param {string} method of the engine, `sample` or `stop`
   * @param {...any} params
   * @returns {Promise<any>} its answer
   * @throws {Error} what the engine says; ProcessEnded: it ended before it answered
   */
  ask(method, ...params) {
    const id = ++this.#last
    return new Promise((resolve, reject) => {
      this.#asked.set(id, { resolve, reject })
      this.#send({ id, method, params })
    })
  }

  /** Ends it by force. @param {string} [why] */
  kill(why = '') {
    this.fault ||= why
    this.#child.kill('SIGKILL')
  }
}
