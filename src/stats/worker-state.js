// What the monitor tracks of each worker: its state, its last sample, its Redis connection.

import { foldSamples } from './merge.js'

/** @import { GatewayEvent, WorkerSample, WorkerView } from './schema.js' */

/** @typedef {Pick<GatewayEvent, 'level' | 'kind' | 'text' | 'worker'>} RedisEvent */

/** Workers sample once a second; one without a sample for this long hangs, ms. */
const SILENT_MS = 1500
/** The same before the first sample, ms. */
const FIRST_SAMPLE_MS = 3000

/**
 * ```
 * starting -> up <-> silent -> down -> starting ...
 * ```
 */
export class WorkerState {
  deaths = 0
  /** @type {WorkerSample | null} the last one */
  sample = null
  /** @type {WorkerSample['overload']} of the last sample */
  overload = null
  /** @type {WorkerSample | null} received since the previous snapshot */
  fresh = null
  #index
  #clock
  /** @type {'starting' | 'up' | 'down'} */
  #state = 'starting'
  #silent = false
  /** ms of its last sample, or of its start. */
  #sampledAt = 0

  /** @param {number} index @param {() => number} clock ms */
  constructor(index, clock) {
    this.#index = index
    this.#clock = clock
  }

  /**
   * @param {'starting' | 'up' | 'down'} state @param {boolean} requested stopped on purpose
   * @returns {WorkerSample | null} the sample of an ended worker that is in no snapshot yet
   */
  enter(state, requested) {
    if (state === 'down' && this.#state !== 'down' && !requested) this.deaths++
    this.#state = state
    this.#silent = false
    this.#sampledAt = this.#clock()
    if (state === 'up') return null
    const { fresh } = this
    this.fresh = null
    this.sample = null
    this.overload = null
    return fresh
  }

  /** @param {WorkerSample} sample @returns {boolean} false if the worker has ended */
  addSample(sample) {
    if (this.#state !== 'up') return false
    this.fresh = this.fresh ? foldSamples(this.fresh, sample) : sample
    this.sample = this.fresh
    this.#sampledAt = this.#clock()
    return true
  }

  /** @returns {number} ms since its last sample */
  get silence() {
    return this.#clock() - this.#sampledAt
  }

  /** @returns {'silent' | 'speaks' | null} the change since the last call */
  checkSilence() {
    const silent = this.#state === 'up' && this.silence > (this.sample ? SILENT_MS : FIRST_SAMPLE_MS)
    if (silent === this.#silent) return null
    this.#silent = silent
    return silent ? 'silent' : 'speaks'
  }

  /** @returns {WorkerView} */
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

/** An outage begins with the first worker that loses Redis and ends when all have it back. */
export class RedisOutage {
  /** @type {Set<number>} */
  #without = new Set()
  #since = 0

  /** @param {number} worker @param {boolean} up @param {number} now ms @returns {RedisEvent | null} to be reported */
  update(worker, up, now) {
    const without = this.#without
    if (up === !without.has(worker)) return null
    if (!up) {
      without.add(worker)
      if (without.size > 1) return null
      this.#since = now
      return {
        level: 'error',
        kind: 'redis_lost',
        text: `worker ${worker} lost its connection to Redis`,
        worker,
      }
    }
    without.delete(worker)
    if (without.size > 0) return null
    const seconds = ((now - this.#since) / 1000).toFixed(1)
    return {
      level: 'info',
      kind: 'redis_back',
      text: `all workers are connected to Redis again, after ${seconds} s`,
      worker: null,
    }
  }
}
