import { url as inspectorUrl } from 'node:inspector'
import { readText } from '../../metrics/proc-files.js'

/** Interval of `tick` calls, ms. */
export const LIVENESS_TICK_MS = 1000
/** Ticks without a sample after which a process is unresponsive. */
const UNRESPONSIVE_TICKS = 2
/** Timeout factor for an unresponsive process that uses the CPU: it may be collecting garbage. */
const BUSY_FACTOR = 6

/**
 * @typedef {object} ProcessTimes
 * @property {number} cpu CPU time of the process, clock ticks (10 ms)
 * @property {number} waited time its main thread was runnable but had no core, ms; 0 if unknown
 * @property {boolean} ready whether its main thread runs or waits for a core now
 */

/**
 * State and CPU time from fields 3, 14 and 15 of /proc/PID/stat (proc(5)), time without a core from the second field of
 * /proc/PID/schedstat (Documentation/scheduler/sched-stats.rst of Linux).
 * @param {number} pid @returns {ProcessTimes}
 */
function readTimes(pid) {
  const stat = readText(`/proc/${pid}/stat`)
  // Field 2, the name, may contain spaces.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const waited = Number(readText(`/proc/${pid}/schedstat`).split(' ')[1] ?? 0) / 1e6
  return { cpu: Number(fields[11] ?? 0) + Number(fields[12] ?? 0), waited, ready: fields[0] === 'R' }
}

/**
 * Detects a stuck process by its samples (one a second) and its CPU time. Time is counted in ticks of the primary: if
 * the primary is stopped too (suspended machine or process group), that counts as one tick.
 *
 * Time without a core does not count: on an overloaded machine a replacement would wait as long, and all clients would
 * have to reconnect.
 */
export class Liveness {
  #pid
  #readTimes
  #startTimeout
  #timeout
  #listening = false
  /** Ticks since its start, then since its last sample. */
  #missed = 0
  /** Consecutive missed ticks without CPU use or wait for a core. */
  #idle = 0
  /** CPU time at the last unresponsive tick. */
  #cpu = 0
  /** Time without a core at the first unresponsive tick, ms. */
  #waitedBefore = 0
  /** Whether a debugger may stop it for any time. */
  debugged = inspectorUrl() !== undefined

  /**
   * @param {number} pid
   * @param {{start_timeout: number, liveness_timeout: number}} options `worker.*` of the configuration, ms; 0: no limit
   * @param {(pid: number) => ProcessTimes} [read] of a process
   */
  constructor(pid, { start_timeout, liveness_timeout }, read = readTimes) {
    this.#pid = pid
    this.#readTimes = read
    this.#startTimeout = start_timeout
    this.#timeout = liveness_timeout
  }

  onListening() {
    this.#listening = true
    this.#missed = 0
  }

  /** @param {boolean} debugged whether its inspector is open */
  onSample(debugged) {
    this.debugged = debugged
    if (this.#listening) this.#missed = 0
  }

  get unresponsive() {
    return this.#listening && this.#missed >= UNRESPONSIVE_TICKS
  }

  /** @returns {string} reason to replace the process, '' if none */
  tick() {
    const ms = ++this.#missed * LIVENESS_TICK_MS
    if (this.debugged) return ''
    if (!this.#listening)
      return this.#isLate(ms) ? `did not listen within ${this.#startTimeout / 1000} s` : ''
    if (!this.unresponsive || this.#timeout === 0) return ''
    const { cpu, waited, ready } = this.#readTimes(this.#pid)
    if (this.#missed === UNRESPONSIVE_TICKS) {
      // No earlier CPU time to compare with.
      this.#idle = ready ? 0 : UNRESPONSIVE_TICKS
      this.#waitedBefore = waited
      this.#cpu = cpu
      return ''
    }
    this.#idle = cpu === this.#cpu && !ready ? this.#idle + 1 : 0
    this.#cpu = cpu
    const stopped = this.#idle * LIVENESS_TICK_MS > this.#timeout
    const stuck = ms - (waited - this.#waitedBefore) > BUSY_FACTOR * this.#timeout
    return stopped || stuck ? `no sample for ${this.#missed} s` : ''
  }

  /** @param {number} ms since its start @returns {boolean} whether it should listen by now */
  #isLate(ms) {
    if (this.#startTimeout === 0 || ms <= this.#startTimeout) return false
    return ms - this.#readTimes(this.#pid).waited > this.#startTimeout
  }
}
