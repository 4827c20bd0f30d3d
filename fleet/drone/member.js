/** @typedef {import('../schema.js').Settings} Settings */
/** @typedef {import('../schema.js').EngineSample & {usage: ReturnType<import('./machine.js').Usage['now']>}} ProcessSample */

/** ms before a process that died is replaced, at first; doubles. */
const BACKOFF = 250
const MAX_BACKOFF = 10_000
/** ms that a process has to live to be trusted again. */
const TRUSTED = 30_000
/** ms that a process may take to close its connections: its engine gives up after 5 s, and tells what it has counted. */
const GRACE = 6_000

/**
 * A place among the drone's processes. The process in it is replaced when it dies; the place has the settings.
 *
 *   start -> up -> died -> (back-off) -> up ...
 *             `-> stop -> gone
 */
export class Member {
  #options
  /** @type {import('node:child_process').ChildProcess | null} */
  #child = null
  /** @type {Map<number, {resolve: (result: any) => void, reject: (error: Error) => void}>} */
  #asked = new Map()
  #asks = 0
  #born = 0
  #backoff = BACKOFF
  /** @type {NodeJS.Timeout | undefined} */
  #timer
  /** Samples in a row that it has not answered. */
  #unanswered = 0
  /** What it said before it died. */
  #fault = ''
  #stopping = false
  /** @type {Promise<void> | undefined} its process ends */
  #gone
  /** @type {Settings | null} */
  settings = null
  /** @type {ProcessSample | null} the last one of the process that is there now */
  sample = null

  /**
   * @param {object} options
   * @param {'connections' | 'publisher'} options.role
   * @param {() => import('node:child_process').ChildProcess} options.fork
   * @param {object} options.launch of the engine
   * @param {number} options.hangAfter s
   * @param {import('./totals.js').Totals} options.totals
   * @param {(text: string) => void} options.onDeath
   */
  constructor(options) {
    this.#options = options
  }

  /** Starts its process. @returns {Promise<void>} when it has its settings */
  async #start() {
    this.#born = performance.now()
    this.#unanswered = 0
    this.#fault = ''
    try {
      const child = this.#options.fork()
      this.#child = child
      child.on('message', message => this.#onMessage(/** @type {any} */ (message)))
      child.on('error', error => {
        this.#fault = error.message
        if (!child.pid) this.#onExit(null, null)
      })
      this.#gone = new Promise(resolve => {
        child.once('exit', (code, signal) => resolve(this.#onExit(code, signal)))
      })
    } catch (error) {
      this.#fault = error.message
      return this.#onExit(null, null)
    }
    await Promise.all([this.ask('begin', this.#options.launch), this.ask('apply', this.settings)])
  }

  /**
   * @param {Settings} settings
   * @returns {Promise<void>} when its process has them
   * @throws {Error} it cannot read them
   */
  apply(settings) {
    this.settings = settings
    return this.#born > 0 ? this.ask('apply', settings) : this.#start()
  }

  /**
   * @param {string} method
   * @param {...any} values
   * @returns {Promise<any>} undefined when there is no process, or it dies meanwhile
   * @throws {Error} what the engine says
   */
  ask(method, ...values) {
    const child = this.#child
    if (!child?.connected) return Promise.resolve()
    return new Promise((resolve, reject) => {
      const ask = ++this.#asks
      this.#asked.set(ask, { resolve, reject })
      // That it could not be told is known by its end.
      child.send([ask, method, ...values], () => {})
    })
  }

  /** @param {[number, any, string?]} answer */
  #onMessage([ask, result, error]) {
    if (ask === 0) this.#fault = error ?? ''
    const asked = this.#asked.get(ask)
    this.#asked.delete(ask)
    if (error === undefined) asked?.resolve(result)
    else asked?.reject(new Error(error))
  }

  /** Asks for a sample, unless it has not answered the last one yet. A process that never does hangs. */
  async look() {
    if (this.#unanswered++ > 0) {
      if (this.#unanswered > this.#options.hangAfter && this.#child) {
        this.#fault = 'it did not answer'
        this.#child.kill('SIGKILL')
      }
      return
    }
    this.#take(await this.ask('sample'))
  }

  /** @param {ProcessSample | undefined} sample */
  #take(sample) {
    if (!sample) return
    this.#unanswered = 0
    this.sample = sample
    this.#options.totals.merge(sample)
  }

  /** @returns {import('../schema.js').DroneProcess[]} none while there is none */
  facts() {
    const { sample } = this
    if (!sample) return []
    return [{ role: this.#options.role, connections: sample.gauges.open, ...sample.usage }]
  }

  /**
   * @param {number | null} code
   * @param {string | null} signal
   */
  #onExit(code, signal) {
    const pid = this.#child?.pid
    this.#child = null
    for (const { resolve } of this.#asked.values()) resolve(undefined)
    this.#asked.clear()
    if (this.sample) this.#options.totals.bury(this.sample)
    const open = this.sample?.gauges.open ?? 0
    this.sample = null
    if (this.#stopping) return
    if (performance.now() - this.#born > TRUSTED) this.#backoff = BACKOFF
    this.#timer = setTimeout(() => this.#start().catch(() => {}), this.#backoff)
    const why = [signal ?? (code === null ? 'no process' : `exit code ${code}`), this.#fault].filter(Boolean)
    this.#options.totals.deaths++
    this.#options.onDeath(
      `${this.#options.role} process ${pid ?? ''} with ${open} connections ended (${why.join(', ')}); another one in ${this.#backoff} ms`,
    )
    this.#backoff = Math.min(MAX_BACKOFF, this.#backoff * 2)
  }

  /**
   * Closes its connections in order and ends its process; by force when that takes too long.
   * @returns {Promise<void>} when it is gone
   */
  async stop() {
    this.#stopping = true
    clearTimeout(this.#timer)
    const child = this.#child
    if (!child) return
    const force = setTimeout(() => child.kill('SIGKILL'), GRACE)
    this.#take(await this.ask('stop').catch(() => {}))
    if (child.connected) child.disconnect()
    await this.#gone
    clearTimeout(force)
  }
}
