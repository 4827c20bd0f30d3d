// Counters since the start of the node, by worker slot. In the primary: a scrape of any worker is complete.

import { noGc } from './merge.js'
import { GC_KINDS, TICK_BOUNDS } from './table.js'
import { waitOf, wholeMicroseconds } from './tick-histogram.js'

/** @import { Flow, Lifetime, Lifetimes as All, MachineSample, ProcessSample, WorkerSample } from './schema.js' */

/** @returns {Lifetime} */
const newLifetime = () => ({
  cpu: { user: 0, system: 0 },
  active: 0,
  ticks: { count: 0, sum: 0, within: TICK_BOUNDS.map(() => 0) },
  gc: noGc(),
  in: { messages: 0, bytes: 0 },
  out: { messages: 0, bytes: 0 },
})

/** @template {Record<string, number>} T @param {T} sum @param {Record<string, any>} more @param {number} [factor] */
function addTo(sum, more, factor = 1) {
  for (const name of Object.keys(sum)) /** @type {any} */ (sum)[name] += more[name] * factor
}

/** @param {Lifetime} lifetime @param {ProcessSample} sample @param {number} interval ms */
function addProcess(lifetime, { cpu, loop, gc }, interval) {
  addTo(lifetime.cpu, cpu, interval)
  lifetime.active += loop.utilization * interval
  for (const kind of GC_KINDS) addTo(lifetime.gc[kind], gc[kind])
  const { ticks } = lifetime
  const { count, avg, buckets } = loop.ticks
  ticks.count += count
  ticks.sum += avg * count
  for (let i = 0; i < buckets.length; i += 2) {
    const tick = waitOf(buckets[i])
    for (let bound = TICK_BOUNDS.length - 1; bound >= 0 && tick <= TICK_BOUNDS[bound]; bound--) {
      ticks.within[bound] += buckets[i + 1]
    }
  }
}

/** Rounds to three digits. @param {any} value @returns {any} */
function copy(value) {
  if (typeof value === 'number') return wholeMicroseconds(value)
  if (value === null) return null
  if (Array.isArray(value)) return value.map(copy)
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, copy(inner)]))
}

export class Lifetimes {
  #primary = newLifetime()
  #workers
  /** @type {All['machine']} */
  #machine = { cpu: null, network: null, listen: null }

  /** @param {number} workers */
  constructor(workers) {
    this.#workers = Array.from({ length: workers }, newLifetime)
  }

  /** @param {ProcessSample} sample @param {number} interval ms */
  addPrimary(sample, interval) {
    addProcess(this.#primary, sample, interval)
  }

  /** @param {WorkerSample} sample */
  addWorker(sample) {
    const lifetime = this.#workers[sample.index]
    addProcess(lifetime, sample, sample.interval)
    addTo(lifetime.in, sample.counts.in)
    addTo(lifetime.out, sample.counts.out)
  }

  /** @param {MachineSample} sample @param {number} interval ms */
  addMachine({ cores, cpu, network, listen }, interval) {
    const sums = this.#machine
    if (cpu) addTo((sums.cpu ??= { user: 0, system: 0, idle: 0, iowait: 0, steal: 0 }), cpu, cores * interval)
    if (network) {
      const sum = (sums.network ??= { rx_bytes: 0, tx_bytes: 0, rx_packets: 0, tx_packets: 0 })
      addTo(sum, network, interval / 1000)
    }
    if (listen) addTo((sums.listen ??= { overflows: 0, drops: 0 }), listen)
  }

  /** @returns {All} */
  read() {
    return copy({ primary: this.#primary, workers: this.#workers, machine: this.#machine })
  }
}
