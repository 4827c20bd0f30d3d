/** @typedef {import('../schema.js').Settings} Settings */
/** @typedef {import('../schema.js').EngineSample & {process: import('../schema.js').DroneProcess}} ProcessSample */

/** ms before a process that died is replaced. */
const BACKOFF = 1000
/** ms that a process may take to close its connections: its engine gives up after 5 s, and tells what it has counted. */
const GRACE = 6_000

/**
 * A place among the drone's processes. The process in it is replaced when it dies; the place has the settings.
 *
 *   up -> died -> (back-off) -> up ...
 *    `-> leaving -> gone
 */
export class Member {
  #options
  /** @type {import('node:child_process').ChildProcess | null} */
  #child = null
  /** What was asked, and not answered yet. @type {Record<string, (value?: any) => void>[]} */
  #asked = []
  /** Samples that it was asked for since the last one. */
  #silent = 0
  /** What it said before it died. */
  #fault = ''
  /** @type {Settings | null} */
  #settings = null
  /** @type {ProcessSample | null} the last one of the process that is there now */
  sample = null
  leaving = false

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
    this.role = options.role
    this.#start()
  }

  get gone() {
    return this.leaving && !this.#child
  }

  #start() {
    if (this.leaving) return
    this.#silent = 0
    this.#fault = ''
    new Promise((resolve, reject) => {
      const child = this.#options.fork()
      this.#child = child
      child.on('message', message => this.#onMessage(/** @type {any} */ (message)))
      child.on('error', error => child.pid ?? reject(error))
      // After all that it has said.
      child.on('close', (code, signal) => resolve(signal ?? `exit code ${code}`))
    })
      .catch(error => error.message)
      .then(why => this.#onEnd(why))
    const { launch, role } = this.#options
    this.#tell({ ...launch, role })
    if (this.#settings) this.apply(this.#settings).catch(() => {})
  }

  /** That it could not be told is known by its end. @param {object} message */
  #tell(message) {
    this.#child?.send(message, () => {})
  }

  /**
   * @param {Settings} settings
   * @returns {Promise<void>} when its process has them
   * @throws {Error} it cannot read them
   */
  apply(settings) {
    this.#settings = settings
    return this.ask('apply', settings)
  }

  /**
   * @param {string} method
   * @param {...any} values
   * @returns {Promise<any>} undefined when there is no process, or it dies meanwhile
   * @throws {Error} what the engine says
   */
  async ask(method, ...values) {
    if (!this.#child) return
    this.#tell([method, ...values])
    return new Promise((result, reject) => {
      this.#asked.push({ result, error: text => reject(new Error(text)) })
    })
  }

  /** @param {[string, any]} message */
  #onMessage([kind, value]) {
    if (kind === 'fault') this.#fault = value
    else if (kind === 'sample') {
      this.#silent = 0
      this.sample = value
      this.#options.totals.merge(value)
    } else this.#asked.shift()?.[kind](value)
  }

  /** Asks for a sample. A process that never answers hangs. */
  look() {
    if (this.#silent++ <= this.#options.hangAfter) return this.#tell(['sample'])
    this.#fault = 'it did not answer'
    this.#child?.kill('SIGKILL')
  }

  /** @param {string} why */
  #onEnd(why) {
    const { totals, onDeath } = this.#options
    const { sample, role } = this
    const pid = this.#child?.pid
    this.#child = this.sample = null
    for (const { result } of this.#asked.splice(0)) result()
    if (sample) totals.bury(sample)
    if (this.leaving) return
    setTimeout(() => this.#start(), BACKOFF)
    totals.deaths++
    onDeath(
      `${role} process ${pid} with ${sample?.gauges.open ?? 0} connections ended (${this.#fault || why}) and is replaced`,
    )
  }

  /**
   * Closes its connections in order and ends its process; by force when that takes too long.
   * @returns {Promise<void>} when it is gone
   */
  async stop() {
    this.leaving = true
    const force = setTimeout(() => this.#child?.kill('SIGKILL'), GRACE)
    // Its end is the answer.
    await this.ask('stop')
    clearTimeout(force)
  }
}
