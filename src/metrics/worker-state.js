// What the monitor tracks of each worker: its state, its last sample, its Redis connection.

import { foldSamples, joinSamples } from './merge.js'

/** @import { GatewayEvent, WorkerSample, WorkerView } from './schema.js' */

/** @typedef {Pick<GatewayEvent, 'level' | 'kind' | 'text' | 'worker'>} RedisEvent */

/** Workers sample once a second; one without a sample for this long hangs, ms. */
const SILENT_MS = 1500
/** The same before the first sample, ms. */
const FIRST_SAMPLE_MS = 3000

/** The samples of one process of a worker. */
class ProcessSamples {
  /** @type {number | null} */
  pid = null
  /** @type {WorkerSample | null} */
  last = null
  /** @type {WorkerSample | null} received since the previous snapshot */
  fresh = null

  /** @param {WorkerSample} sample */
  add(sample) {
    this.fresh = this.fresh ? foldSamples(this.fresh, sample) : sample
    this.last = this.fresh
  }

  /** @returns {WorkerSample | null} */
  take() {
    const { fresh } = this
    this.fresh = null
    return fresh
  }
}

/**
 * One slot: its current process, and earlier ones that let their clients go.
 *
 * ```
 * starting -> up <-> silent -> down -> starting ...
 * ```
 */
export class WorkerState {
  deaths = 0
  /** @type {WorkerSample['overload']} of the last sample */
  overload = null
  /** The current process. */
  #current = new ProcessSamples()
  /** @type {Map<number, ProcessSamples>} processes that let their clients go, by pid */
  #draining = new Map()
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
   * @param {'starting' | 'up' | 'down'} state of the current process @param {boolean} requested stopped on purpose
   * @param {number | null} pid of an `up` process: samples of others do not count; null: unknown
   * @returns {WorkerSample | null} the sample of an ended worker that is in no snapshot yet
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

  /** The current process lets its clients go; another one follows. @param {number} pid */
  drains(pid) {
    this.overload = null
    this.#draining.set(pid, this.#current)
    this.#current = new ProcessSamples()
  }

  /** @param {number} pid @returns {boolean} false: it lets its clients go, or was to replace the current one */
  isCurrent(pid) {
    return !this.#draining.has(pid) && [null, pid].includes(this.#current.pid)
  }

  /** @param {number} pid of a process that let its clients go @returns {WorkerSample | null} in no snapshot yet */
  drained(pid) {
    const { fresh = null } = this.#draining.get(pid) ?? {}
    this.#draining.delete(pid)
    return fresh
  }

  /** @param {WorkerSample} sample @returns {boolean} false if its process has ended, or does not listen yet */
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

  /** @returns {WorkerSample[]} the last one of each process */
  samples() {
    return [this.#current, ...this.#draining.values()].flatMap(({ last }) => last ?? [])
  }

  /** @returns {WorkerSample[]} received since the last call, one for each process */
  takeFresh() {
    return [this.#current, ...this.#draining.values()].flatMap(samples => samples.take() ?? [])
  }

  /** @returns {number} ms since its last sample */
  get silence() {
    return this.#clock() - this.#sampledAt
  }

  /** @returns {'silent' | 'speaks' | null} the change since the last call */
  checkSilence() {
    const silent = this.#state === 'up' && this.silence > (this.#current.last ? SILENT_MS : FIRST_SAMPLE_MS)
    if (silent === this.#silent) return null
    this.#silent = silent
    return silent ? 'silent' : 'speaks'
  }

  /** @returns {WorkerView} */
  view() {
    const { deaths } = this
    const samples = this.samples()
    const sample = samples.length > 0 ? joinSamples(samples) : null
    return {
      index: this.#index,
      state: this.#silent ? 'silent' : this.#state === 'up' && !sample ? 'starting' : this.#state,
      age: sample ? Math.round(this.silence) : 0,
      deaths,
      draining: this.#draining.size,
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
