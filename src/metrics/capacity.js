// Estimates how many more connections fit, from the memory of the open ones.

/** @import { Capacity, MachineSample, ProcessSample, WorkerSample } from './schema.js' */

/** Below it, the gateway's own memory dominates. */
const MIN_CONNECTIONS = 1000
const FEW_CONNECTIONS = 100
/** Share of memory kept free. */
const RESERVE = 0.1
/** Weight of a second: smooths garbage collection over about ten seconds. */
const WEIGHT = 0.1

/** Lowest memory of a process, and its connections at that time. Memory above it belongs to later connections. */
class Baseline {
  #bytes = Number.POSITIVE_INFINITY
  #connections = Number.POSITIVE_INFINITY

  /**
   * Bytes and connections above the baseline. Less memory at many more connections (swapping, shrinking caches) is
   * ignored.
   * @param {number} bytes @param {number} connections
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

  /** @param {number | null} next */
  add(next) {
    if (next === null) this.value = null
    else this.value = this.value === null ? next : this.value + (next - this.value) * WEIGHT
    return this.value
  }
}

const whole = (/** @type {number | null} */ value) => value && Math.round(value)

export class CapacityEstimator {
  /** By pid. @type {Map<number, Baseline>} */
  #processes = new Map()
  #perConnection = new MovingAverage()
  #kernelPerConnection = new MovingAverage()
  #memory = new MovingAverage()

  /** @param {number} connectionLimit 0: none */
  constructor(connectionLimit) {
    this.connectionLimit = connectionLimit
  }

  /** Sets the baseline before any connections. @param {number} pid @param {number} rss bytes */
  begin(pid, rss) {
    this.#baseline(pid).above(rss, 0)
  }

  /**
   * @param {ProcessSample} primary @param {WorkerSample[]} samples @param {MachineSample} machine
   * @param {number | null} kernel bytes per connection; null if unknown
   * @returns {Capacity}
   */
  measure(primary, samples, machine, kernel) {
    const open = samples.reduce((sum, { connections }) => sum + connections.open, 0)
    const each = this.#perConnection.add(this.#userSpace(primary, samples, open))
    const kernelEach = this.#kernelPerConnection.add(each === null ? null : kernel)
    const known = each !== null && each + (kernelEach ?? 0) > 0
    const spare = machine.memory.available - RESERVE * machine.memory.total
    const memory = this.#memory.add(known ? Math.max(0, spare) / (each + (kernelEach ?? 0)) : null)
    const bounds = /** @type {[Capacity['bound'], number | null][]} */ ([
      ['memory', memory],
      ['files', unusedDescriptors(samples, machine)],
      ['connection_limit', this.connectionLimit > 0 ? this.connectionLimit - open : null],
    ])
    const [lowest] = bounds
      .map(([bound, count]) => ({ bound, fits: count === null ? Infinity : Math.max(0, Math.floor(count)) }))
      .sort((a, b) => a.fits - b.fits)
    const { fits, bound } = memory === null ? { fits: null, bound: null } : lowest
    return { bytes_per_connection: whole(each), kernel_per_connection: whole(kernelEach), fits, bound }
  }

  /** @param {ProcessSample} primary @param {WorkerSample[]} samples @param {number} open */
  #userSpace(primary, samples, open) {
    const workers = samples.map(({ pid, memory, connections }) =>
      this.#baseline(pid).above(memory.rss, connections.open),
    )
    // Its history and presence serve all connections.
    const ofPrimary = this.#baseline(primary.pid).above(primary.memory.rss, open)
    const bytes = workers.reduce((sum, above) => sum + above.bytes, ofPrimary.bytes)
    const connections = workers.reduce((sum, above) => sum + above.connections, 0)
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

/** Null if unknown in a worker. @param {WorkerSample[]} samples @param {MachineSample} machine */
function unusedDescriptors(samples, machine) {
  let left = 0
  for (const { files } of samples) {
    if (files.open === null || files.limit === null) return null
    left += Math.max(0, files.limit - files.open)
  }
  return machine.files ? Math.min(left, machine.files.limit - machine.files.open) : left
}
