import { EngineProcess, ProcessEnded } from './engine-process.js'

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
  /** @type {EngineProcess | null} */
  #process = null
  /** Samples that it was asked for since the last one. */
  #silent = 0
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
    return this.leaving && !this.#process
  }

  #start() {
    if (this.leaving) return
    const { launch, role, fork } = this.#options
    this.#silent = 0
    try {
      this.#process = new EngineProcess(fork, { ...launch, role })
    } catch (error) {
      return this.#onEnd(error.message)
    }
    this.#process.ended.then(why => this.#onEnd(why))
    if (this.#settings) this.apply(this.#settings).catch(() => {})
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
   * @param {...any} params
   * @returns {Promise<any>} undefined when there is no process, or it dies meanwhile
   * @throws {Error} what the engine says
   */
  async ask(method, ...params) {
    try {
      return await this.#process?.ask(method, ...params)
    } catch (error) {
      if (!(error instanceof ProcessEnded)) throw error
    }
  }

  /** Asks for a sample. A process that never answers hangs. */
  look() {
    if (this.#silent++ <= this.#options.hangAfter) return void this.#take('sample')
    this.#process?.kill('it did not answer')
  }

  /** @param {'sample' | 'stop'} method whose answer is a sample */
  async #take(method) {
    const process = this.#process
    // What its engine cannot say is known by its silence.
    const sample = await this.ask(method).catch(() => null)
    if (!sample) return
    this.#options.totals.merge(sample)
    this.#silent = 0
    if (this.#process === process) this.sample = sample
  }

  /** @param {string} why */
  #onEnd(why) {
    const { totals, onDeath } = this.#options
    const { sample, role } = this
    const pid = this.#process?.pid
    this.#process = this.sample = null
    if (sample) totals.bury(sample)
    if (this.leaving) return
    setTimeout(() => this.#start(), BACKOFF)
    totals.deaths++
    onDeath(
      `${role} process ${pid} with ${sample?.gauges.open ?? 0} connections ended (${why}) and is replaced`,
    )
  }

  /**
   * Closes its connections in order and ends its process; by force when that takes too long.
   * @returns {Promise<void>} when it is gone
   */
  async stop() {
    this.leaving = true
    const process = this.#process
    if (!process) return
    const force = setTimeout(() => process.kill(), GRACE)
    this.#take('stop')
    await process.ended
    clearTimeout(force)
  }
}
