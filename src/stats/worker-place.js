import { foldSamples } from './merge.js'

/** @typedef {import('./schema.js').WorkerSample} WorkerSample */

/** A worker sends a sample a second: one that has not for so long hangs, ms. */
const SILENT_MS = 1500
/** The first one may take longer, ms. */
const FIRST_SAMPLE_MS = 3000

/**
 * The place of one worker, as the monitor knows it.
 *
 * ```
 * starting -> up <-> silent -> down -> starting ...
 * ```
 */
export class WorkerPlace {
  deaths = 0
  /** @type {WorkerSample | null} its last one */
  sample = null
  /** @type {WorkerSample | null} what came in since the snapshot before */
  fresh = null
  #index
  #clock
  /** @type {'starting' | 'up' | 'down'} */
  #state = 'starting'
  #silent = false
  /** When its last sample came, or when it began to listen. */
  #heardAt = 0

  /**
   * @param {number} index
   * @param {() => number} clock ms
   */
  constructor(index, clock) {
    this.#index = index
    this.#clock = clock
  }

  /**
   * @param {'starting' | 'up' | 'down'} state
   * @param {boolean} asked whether it went down on purpose
   * @returns {WorkerSample | null} what it had told and no snapshot has said yet, when it is gone
   */
  enter(state, asked) {
    if (state === 'down' && this.#state !== 'down' && !asked) this.deaths++
    this.#state = state
    this.#silent = false
    this.#heardAt = this.#clock()
    if (state === 'up') return null
    const { fresh } = this
    this.fresh = null
    this.sample = null
    return fresh
  }

  /**
   * @param {WorkerSample} sample
   * @returns {boolean} false when there is no worker that it could be of: it has ended since
   */
  take(sample) {
    if (this.#state !== 'up') return false
    this.fresh = this.fresh ? foldSamples(this.fresh, sample) : sample
    this.sample = this.fresh
    this.#heardAt = this.#clock()
    return true
  }

  /** @returns {number} ms since it was heard */
  get silence() {
    return this.#clock() - this.#heardAt
  }

  /** @returns {'silent' | 'speaks' | null} what has become of it since this was asked last */
  notice() {
    const silent = this.#state === 'up' && this.silence > (this.sample ? SILENT_MS : FIRST_SAMPLE_MS)
    if (silent === this.#silent) return null
    this.#silent = silent
    return silent ? 'silent' : 'speaks'
  }

  /** @returns {import('./schema.js').WorkerView} */
  view() {
    const { sample, deaths } = this
    return {
      index: this.#index,
      state: this.#silent ? 'silent' : this.#state === 'up' && !sample ? 'starting' : this.#state,
      age: sample ? Math.round(this.silence) : 0,
      deaths,
      sample,
    }
  }
}
