// A monitor with a simulated clock, machine and workers.

import { emptyCounts } from '../../src/metrics/merge.js'
import { Monitor } from '../../src/metrics/monitor.js'
import { mockSnapshots } from './mock.js'

/** @typedef {import('../../src/metrics/schema.js').WorkerSample} WorkerSample */

const [blank] = mockSnapshots({ seconds: 1, workers: 1, connections: 0 })

/**
 * @param {Partial<ConstructorParameters<typeof Monitor>[0]> & {up?: boolean}} [options] `up`: workers listen from the
 *   beginning
 */
export function monitorRig({ workers = 2, up = true, ...options } = {}) {
  let now = 0
  /** @type {any[]} lines of the log */
  const logged = []
  const { machine, primary, node } = structuredClone(blank)
  const monitor = new Monitor({
    node,
    workers,
    connectionLimit: 0,
    machine: { sample: () => machine },
    process: { sample: () => ({ ...primary, interval: 1000 }) },
    log: /** @type {any} */ ({ error: (/** @type {any[]} */ ...line) => logged.push(line) }),
    clock: () => 1_767_614_400_150 + now,
    now: () => now,
    ...options,
  })
  for (let index = 0; up && index < workers; index++) monitor.workerState(index, 'up')
  return {
    monitor,
    machine,
    logged,
    /** @param {number} ms */
    pass(ms) {
      now += ms
    },
    /** @param {number} [ms] passes, and then a snapshot is made */
    next(ms = 1000) {
      now += ms
      return monitor.snapshot()
    },
  }
}

/**
 * @param {number} index of the worker @param {object} [more]
 * @param {Partial<import('../../src/metrics/schema.js').Counts>} [more.counts]
 * @param {Partial<WorkerSample>} [more.sample] @returns {WorkerSample}
 */
export function sampleOf(index, { counts, sample } = {}) {
  const own = /** @type {WorkerSample} */ (structuredClone(blank.workers[0].sample))
  return { ...own, index, pid: 100 + index, ...sample, counts: { ...emptyCounts(), ...counts } }
}
