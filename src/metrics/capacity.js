// Estimates how many more connections fit, from the measured memory of those that are open.

/** @import { Capacity, MachineSample, ProcessSample, WorkerSample } from './schema.js' */

/** With fewer connections, the gateway's own memory hides that of its connections. */
const MIN_CONNECTIONS = 1000
/** Up to this many do not affect a baseline. */
const FEW_CONNECTIONS = 100
/** Share of memory that stays free. */
const RESERVE = 0.1
/** Weight of a new second: smooths the effect of garbage collection over about ten seconds. */
const WEIGHT = 0.1

/** The lowest memory of a process, with its connections then. Later connections account for all memory above it. */
class Baseline {
  #bytes = Number.POSITIVE_INFINITY
  #connections = Number.POSITIVE_INFINITY

  /**
   * Lowers the baseline, unless many more connections show another cause: swapping, or shrinking caches.
   * @param {number} bytes @param {number} connections
   * @returns {{bytes: number, connections: number}} above the baseline
   */
  above(bytes, connections) {
    if (bytes < this.#bytes && connections <= Math.max(FEW_CONNECTIONS, this.#connections)) {
      this.#bytes = bytes
      this.#connections = connections
    }
    return { bytes: bytes - this.#bytes, connections: connections - this.#connections }
  }
}

/** Exponential moving average; null resets it. */
class MovingAverage {
  /** @type {number | null} */
  value = null

  /** @param {number | null} next @returns {number | null} */
  add(next) {
    if (next === null) this.value = null
    else this.value = this.value === null ? next : this.value + (next - this.value) * WEIGHT
    return this.value
  }
}

/** @param {number | null} value @returns {number | null} */
const whole = value => value && Math.round(value)

export class CapacityEstimator {
  /** @type {Map<number, Baseline>} of processes, by pid */
  #processes = new Map()
  #perConnection = new MovingAverage()
  #kernelPerConnection = new MovingAverage()
  #memory = new MovingAverage()

  /** @param {number} connectionLimit of the node; 0: none */
  constructor(connectionLimit) {
    this.connectionLimit = connectionLimit
  }

  /**
   * Sets the baseline of a process before its first connection: thousands may arrive before its first sample.
   * @param {number} pid @param {number} rss bytes
   */
  begin(pid, rss) {
    this.#baseline(pid).above(rss, 0)
  }

  /**
   * @param {ProcessSample} primary @param {WorkerSample[]} samples of all running workers
   * @param {MachineSample} machine @param {number | null} kernel kernel bytes per connection; null if unknown
   * @returns {Capacity}
   */
  measure(primary, samples, machine, kernel) {
    const open = samples.reduce((sum, { connections }) => sum + connections.open, 0)
    const each = this.#perConnection.add(this.#userSpace(primary, samples, open))
    const kernelEach = this.#kernelPerConnection.add(each === null ? null : kernel)
    const known = each !== null && each + (kernelEach ?? 0) > 0
    const spare = machine.memory.available - RESERVE * machine.memory.total
    const memory = this.#memory.add(known ? Math.max(0, spare) / (each + (kernelEach ?? 0)) : null)
    /** @type {{fits: number | null, bound: Capacity['bound']}} */
    const fits = { fits: null, bound: null }
    if (memory !== null) {
      const bounds = /** @type {const} */ ([
        ['memory', memory],
        ['files', unusedDescriptors(samples, machine)],
        ['connection_limit', this.connectionLimit > 0 ? this.connectionLimit - open : null],
      ])
      for (const [bound, count] of bounds) {
        if (count === null || (fits.fits !== null && count >= fits.fits)) continue
        fits.fits = Math.max(0, Math.floor(count))
        fits.bound = bound
      }
    }
    return { bytes_per_connection: whole(each), kernel_per_connection: whole(kernelEach), ...fits }
  }

  /** @param {ProcessSample} primary @param {WorkerSample[]} samples @param {number} open @returns {number | null} */
  #userSpace(primary, samples, open) {
    // History and presence in the primary serve all connections.
    let bytes = this.#baseline(primary.pid).above(primary.memory.rss, open).bytes
    let connections = 0
    for (const sample of samples) {
      const above = this.#baseline(sample.pid).above(sample.memory.rss, sample.connections.open)
      bytes += above.bytes
      connections += above.connections
    }
    return connections >= MIN_CONNECTIONS ? Math.max(0, bytes / connections) : null
  }

  /** @param {number} pid */
  end(pid) {
    this.#processes.delete(pid)
  }

  /** @param {number} pid */
  #baseline(pid) {
    let baseline = this.#processes.get(pid)
    if (!baseline) this.#processes.set(pid, (baseline = new Baseline()))
    return baseline
  }
}

/**
 * @param {WorkerSample[]} samples @param {MachineSample} machine
 * @returns {number | null} unused descriptors; null if a worker does not know
 */
function unusedDescriptors(samples, machine) {
  let left = 0
  for (const { files } of samples) {
    if (files.open === null || files.limit === null) return null
    left += Math.max(0, files.limit - files.open)
  }
  return machine.files ? Math.min(left, machine.files.limit - machine.files.open) : left
}
