import { foldSamples, joinSamples } from './merge.js'

/** @import { WorkerSample, WorkerView } from './schema.js' */

/** Maximum age of a live worker's last sample (one a second). */
const SILENT_MS = 1500
/** Before the first sample. */
const FIRST_SAMPLE_MS = 3000

class ProcessSamples {
  /** @type {number | null} */
  pid = null
  /** @type {WorkerSample | null} */
  last = null
  /** Since the previous snapshot. @type {WorkerSample | null} */
  fresh = null

  /** @param {WorkerSample} sample */
  add(sample) {
    this.last = this.fresh = this.fresh ? foldSamples(this.fresh, sample) : sample
  }

  /** @returns {WorkerSample | null} */
  take() {
    const { fresh } = this
    this.fresh = null
    return fresh
  }
}

/**
 * One slot: its current process, and draining ones.
 *
 * ```
 * starting -> up <-> silent -> down -> starting ...
 * ```
 */
export class WorkerState {
  deaths = 0
  /** @type {WorkerSample['overload']} */
  overload = null
  #current = new ProcessSamples()
  /** By pid. @type {Map<number, ProcessSamples>} */
  #draining = new Map()
  #index
  #clock
  /** @type {'starting' | 'up' | 'down'} */
  #state = 'starting'
  #silent = false
  /** Last sample, or start, ms. */
  #sampledAt = 0

  /** @param {number} index @param {() => number} clock ms */
  constructor(index, clock) {
    this.#index = index
    this.#clock = clock
  }

  /**
   * Returns the unreported sample of an ended worker.
   * @param {'starting' | 'up' | 'down'} state of the current process @param {boolean} requested not a crash
   * @param {number | null} pid of an `up` process: its samples count; null: unknown
   */
  enter(state, requested, pid) {
    if (state === 'down' && this.#state !== 'down' && !requested) this.deaths++
    this.#state = state
    this.#silent = false
    this.#sampledAt = this.#clock()
    this.#current.pid = pid
    if (state === 'up') return null
    const { fresh } = this.#current
    this.#current = new ProcessSamples()
    this.overload = null
    return fresh
  }

  /** The current process drains; another one replaces it. @param {number} pid */
  drains(pid) {
    this.overload = null
    this.#draining.set(pid, this.#current)
    this.#current = new ProcessSamples()
  }

  /** False for draining processes and failed replacements. @param {number} pid */
  isCurrent(pid) {
    return !this.#draining.has(pid) && [null, pid].includes(this.#current.pid)
  }

  /** Returns the unreported sample. @param {number} pid */
  drained(pid) {
    const { fresh = null } = this.#draining.get(pid) ?? {}
    this.#draining.delete(pid)
    return fresh
  }

  /** Ignores samples of processes that have ended or do not listen yet (false). @param {WorkerSample} sample */
  addSample(sample) {
    const draining = this.#draining.get(sample.pid)
    if (draining) {
      draining.add(sample)
      return true
    }
    const { pid } = this.#current
    if (this.#state !== 'up' || (pid !== null && pid !== sample.pid)) return false
    this.#current.add(sample)
    this.#sampledAt = this.#clock()
    return true
  }

  /** The last sample of each process. @returns {WorkerSample[]} */
  samples() {
    return [this.#current, ...this.#draining.values()].flatMap(({ last }) => last ?? [])
  }

  /** One merged sample per process since the last call. */
  takeFresh() {
    return [this.#current, ...this.#draining.values()].flatMap(samples => samples.take() ?? [])
  }

  /** Time since the last sample, ms. */
  get silence() {
    return this.#clock() - this.#sampledAt
  }

  /** Updates and returns `silent`. */
  checkSilence() {
    this.#silent = this.#state === 'up' && this.silence > (this.#current.last ? SILENT_MS : FIRST_SAMPLE_MS)
    return this.#silent
  }

  /** @returns {WorkerView} */
  view() {
    const samples = this.samples()
    const sample = samples.length > 0 ? joinSamples(samples) : null
    return {
      index: this.#index,
      state: this.#silent ? 'silent' : this.#state === 'up' && !sample ? 'starting' : this.#state,
      age: sample ? Math.round(this.silence) : 0,
      deaths: this.deaths,
      draining: this.#draining.size,
      sample,
    }
  }
}
