import { url as inspectorUrl } from 'node:inspector'
import { readText } from '../stats/proc-reader.js'

/** Interval of `tick` calls, ms. */
export const LIVENESS_TICK_MS = 1000
/** Ticks without a sample after which a worker counts as silent. */
const SILENT_TICKS = 2
/** A silent worker that uses the CPU gets this many times the timeout: it may collect garbage, or be overloaded. */
const BUSY_FACTOR = 6

/**
 * CPU time of a process, from fields 14 and 15 of /proc/PID/stat (proc(5)).
 * @param {number} pid @returns {number} clock ticks (10 ms); 0 if unknown
 */
function cpuTime(pid) {
  const text = readText(`/proc/${pid}/stat`)
  // Field 2, the name, may contain spaces.
  const [utime, stime] = text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13)
  return Number(utime ?? 0) + Number(stime ?? 0)
}

/**
 * Whether a worker still runs, by its samples (one a second) and its CPU time. Time is counted in ticks of the primary:
 * if the primary stood still, too (a suspended machine or process group), that was one tick.
 */
export class Liveness {
  #pid
  #readCpu
  #startTimeout
  #timeout
  #listening = false
  /** Ticks since its start, then since its last sample. */
  #missed = 0
  /** Those of them in a row in which it used no CPU time. */
  #idle = 0
  #cpu = 0
  /** A debugger may hold it for any time. */
  #debugged = inspectorUrl() !== undefined

  /**
   * @param {number} pid
   * @param {{start_timeout: number, liveness_timeout: number}} options `worker.*` of the configuration, ms; 0: no limit
   * @param {(pid: number) => number} [readCpu] CPU time of a process
   */
  constructor(pid, { start_timeout, liveness_timeout }, readCpu = cpuTime) {
    this.#pid = pid
    this.#readCpu = readCpu
    this.#startTimeout = start_timeout
    this.#timeout = liveness_timeout
  }

  /** The worker listens. */
  listens() {
    this.#listening = true
    this.#missed = 0
  }

  /** A sample has arrived. @param {boolean} debugged whether its inspector is open */
  heard(debugged) {
    this.#debugged = debugged
    if (this.#listening) this.#missed = 0
  }

  /** Whether a debugger may hold it. */
  get debugged() {
    return this.#debugged
  }

  get silent() {
    return this.#listening && this.#missed >= SILENT_TICKS
  }

  /** @returns {string} why the worker must be replaced; '': it lives */
  tick() {
    const ms = ++this.#missed * LIVENESS_TICK_MS
    if (this.#debugged) return ''
    if (!this.#listening) {
      const late = this.#startTimeout > 0 && ms > this.#startTimeout
      return late ? `it did not listen within ${this.#startTimeout / 1000} s` : ''
    }
    if (!this.silent || this.#timeout === 0) return ''
    const cpu = this.#readCpu(this.#pid)
    // The first silent tick has nothing to compare with.
    if (this.#missed === SILENT_TICKS) this.#idle = SILENT_TICKS
    else this.#idle = cpu === this.#cpu ? this.#idle + 1 : 0
    this.#cpu = cpu
    const stopped = this.#idle * LIVENESS_TICK_MS > this.#timeout
    return stopped || ms > BUSY_FACTOR * this.#timeout ? `it sent no sample for ${this.#missed} s` : ''
  }
}
