// Whether a worker is overloaded, and new connections are better refused than served late by everybody's turn.

import { totalmem } from 'node:os'
import { MemoryLimit } from './memory-limit.js'
import { timeAbove } from './tick-histogram.js'

/** @import { ProcessSample } from './schema.js' */

/** @typedef {'event_loop' | 'memory'} OverloadReason */

/** Samples in a row: one long garbage collection is no overload, and one quiet second no recovery. */
const SAMPLES = { overloaded: 2, recovered: 3 }
/** Share of the time in ticks above `overload.max_tick`: overloaded above the first, recovered below the second. */
const SHARES = { overloaded: 0.7, recovered: 0.5 }
/** Memory is free again this many per cent below `overload.max_memory`. */
const FREE_MEMORY = 5
/** A collection tells garbage from memory in use; in a worker with work to do V8 collects by itself. */
const IDLE_CPU = 0.2
/** Such collections may use this share of the time. */
const COLLECT_SHARE = 1 / 50
const MIN_COLLECT_INTERVAL_MS = 3000
/** MB of a semi-space at most: V8 before 13 (Node.js 20, 22), 13 (24), and later (26); V8 does not tell it. */
const [V8_MAJOR] = process.versions.v8.split('.').map(Number)
const SEMI_SPACE = V8_MAJOR < 13 ? 16 : V8_MAJOR === 13 ? 64 : 32
/** Part of a heap's limit that only the young generation may use: three semi-spaces, bytes. */
export const YOUNG_BYTES = 3 * SEMI_SPACE * 1024 * 1024
/** Least part of the limit that is the old generation: for heaps that flags make small. */
const LEAST_OLD = 1 / 4

/**
 * V8 ends the process when the old generation is full; the limit that it tells includes the young one.
 * @param {ProcessSample['memory']} memory @returns {number} share of the old generation in use
 */
function heapShare({ heap_used, heap_limit, spaces }) {
  const young = (spaces.new?.used ?? 0) + (spaces.new_large_object?.used ?? 0)
  return (heap_used - young) / Math.max(heap_limit * LEAST_OLD, heap_limit - YOUNG_BYTES)
}

/**
 * Judges the samples of a worker, one a second.
 *
 *   up -- ticks above max_tick take 70 % of the time, twice in a row --> overloaded: event_loop
 *      -- memory above max_memory                                    --> overloaded: memory
 *   overloaded -- below 50 % and memory is free, three times in a row --> up
 *
 * `maxTick` is for workers with a core each. Where more workers share the cores, each of them waits for the others, so
 * the limit is as many times longer: with 54 workers on two cores that are full, most ticks last 100 ms to 1 s.
 *
 * Measured in workers with a core each: with 50,000 to 200,000 deliveries/s over 5,000 clients no tick is above 100 ms,
 * also where the core is full. One channel of 15,000 clients with three times the publications that a worker can
 * deliver: ticks above 100 ms take 86 % of the time.
 */
export class Overload {
  /** @type {OverloadReason | null} null: not overloaded */
  reason = null
  #maxTick
  #maxMemory
  #limit
  #collect
  #onChange
  /** Samples with long ticks, and samples without any overload, in a row. */
  #long = 0
  #fine = 0
  /** Earliest time of the next collection. */
  #collectAt = 0
  #clock

  /**
   * @param {object} options @param {number} options.maxTick ms; 0: any
   * @param {number} options.maxMemory per cent; 0: any
   * @param {number} [options.workersPerCore] 1 if there are fewer workers than cores
   * @param {() => void} [options.collect] collects garbage
   * @param {(reason: OverloadReason | null, facts: {memory_percent: number, tick_max_ms: number}) => void}
   *   [options.onChange]
   * @param {{share: () => number} | null} [options.limit] memory limit of the control group
   * @param {() => number} [options.clock] ms, monotonic
   */
  constructor({
    maxTick,
    maxMemory,
    workersPerCore = 1,
    collect = () => {},
    onChange = () => {},
    limit = MemoryLimit.find(totalmem()),
    clock = () => performance.now(),
  }) {
    this.#maxTick = maxTick * Math.max(1, workersPerCore)
    this.#maxMemory = maxMemory
    this.#limit = limit
    this.#collect = collect
    this.#onChange = onChange
    this.#clock = clock
  }

  /** @param {ProcessSample & {interval: number}} sample @returns {OverloadReason | null} */
  update(sample) {
    const { interval, cpu, loop, memory } = sample
    const heap = heapShare(memory)
    const used = this.#maxMemory === 0 ? 0 : Math.max(heap, this.#limit?.share() ?? 0) * 100
    const long = this.#maxTick > 0 && timeAbove(loop.ticks, this.#maxTick) > SHARES.overloaded * interval
    this.#long = long ? this.#long + 1 : 0
    const full = this.#maxMemory > 0 && used > this.#maxMemory
    if (used === heap * 100 && used > this.#maxMemory - FREE_MEMORY) this.#tellGarbage(cpu.user + cpu.system)
    const reason = full ? 'memory' : this.#long >= SAMPLES.overloaded ? 'event_loop' : null
    if (reason !== null) this.#fine = 0
    else if (this.reason !== null && this.#isFine(sample, used)) this.#fine++
    else this.#fine = 0
    const next = reason ?? (this.#fine >= SAMPLES.recovered ? null : this.reason)
    if (next !== this.reason) {
      this.reason = next
      this.#onChange(next, { memory_percent: Math.round(used), tick_max_ms: Math.round(loop.ticks.max) })
    }
    return next
  }

  /** @param {ProcessSample & {interval: number}} sample @param {number} used per cent of the memory */
  #isFine({ interval, loop }, used) {
    if (used > this.#maxMemory - FREE_MEMORY && this.#maxMemory > 0) return false
    if (this.#maxTick === 0) return true
    return timeAbove(loop.ticks, this.#maxTick) < SHARES.recovered * interval
  }

  /** @param {number} cpu share of a core */
  #tellGarbage(cpu) {
    const now = this.#clock()
    if (cpu >= IDLE_CPU || now < this.#collectAt) return
    this.#collect()
    const end = this.#clock()
    this.#collectAt = end + Math.max(MIN_COLLECT_INTERVAL_MS, (end - now) / COLLECT_SHARE)
  }
}
