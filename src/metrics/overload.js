import { totalmem } from 'node:os'
import { MemoryLimit } from './control-groups.js'
import { timeAbove } from './tick-histogram.js'

/** @import { ProcessSample } from './schema.js' */

/** @typedef {'event_loop' | 'memory'} OverloadReason */

/** Consecutive samples: a long collection is no overload, a quiet second no recovery. */
const SAMPLES = { overloaded: 2, recovered: 3 }
/** Share of the time in ticks above `overload.max_tick`. */
const SHARES = { overloaded: 0.7, recovered: 0.5 }
/** Recovery margin below `overload.max_memory`, percentage points. */
const FREE_MEMORY = 5
/** Share of a core: below it, a worker collects garbage to measure the memory in use. */
const IDLE_CPU = 0.2
/** Maximum share of the time for such collections. */
const COLLECT_SHARE = 1 / 50
const MIN_COLLECT_INTERVAL_MS = 3000
/** MB: V8 before 13 (Node.js 20, 22), 13 (24), and later (26); V8 does not report it. */
const [V8_MAJOR] = process.versions.v8.split('.').map(Number)
const SEMI_SPACE = V8_MAJOR < 13 ? 16 : V8_MAJOR === 13 ? 64 : 32
/** Three semi-spaces, reserved for the young generation. */
export const YOUNG_BYTES = 3 * SEMI_SPACE * 1024 * 1024
/** Minimum share of the old generation in the limit, for heaps limited by flags. */
const MIN_OLD = 1 / 4

/**
 * V8 ends the process when the old generation is full; its limit includes the young one.
 * @param {ProcessSample['memory']} memory
 */
function heapShare({ heap_used, heap_limit, spaces }) {
  const young = (spaces.new?.used ?? 0) + (spaces.new_large_object?.used ?? 0)
  return (heap_used - young) / Math.max(heap_limit * MIN_OLD, heap_limit - YOUNG_BYTES)
}

/**
 * Evaluates a worker's samples, one a second.
 *
 *   up -- ticks above max_tick take 70 % of the time, twice in a row --> overloaded: event_loop
 *      -- memory above max_memory                                    --> overloaded: memory
 *   overloaded -- below 50 % and memory is free, three times in a row --> up
 *
 * `maxTick` assumes one core per worker; workers that share cores wait for each other: with 54 workers on two full
 * cores, most ticks last 100 ms to 1 s.
 *
 * Measured with a core each: 50,000 to 200,000 deliveries/s over 5,000 clients have no tick above 100 ms, even on a
 * full core. With three times the publications that a worker can deliver to 15,000 clients, ticks above 100 ms take 86
 * % of the time.
 */
export class Overload {
  /** @type {OverloadReason | null} */
  reason = null
  #maxTick
  #maxMemory
  #parts
  /** Consecutive samples with long ticks, without overload. */
  #long = 0
  #fine = 0
  #collectAt = 0

  /**
   * @param {object} options
   * @param {number} options.maxTick ms; 0: any
   * @param {number} options.maxMemory per cent; 0: any
   * @param {number} [options.workersPerCore] at least 1
   * @param {() => void} [options.collect] garbage
   * @param {(reason: OverloadReason | null, facts: {memory_percent: number, tick_max_ms: number}) => void}
   *   [options.onChange]
   * @param {{share: () => number} | null} [options.limit] of the control group
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
    this.#parts = { collect, onChange, limit, clock }
  }

  /** @param {ProcessSample & {interval: number}} sample @returns {OverloadReason | null} */
  update({ interval, cpu, loop, memory }) {
    const heap = heapShare(memory) * 100
    const used = this.#maxMemory === 0 ? 0 : Math.max(heap, (this.#parts.limit?.share() ?? 0) * 100)
    const long = this.#maxTick === 0 ? 0 : timeAbove(loop.ticks, this.#maxTick) / interval
    const isFree = this.#maxMemory === 0 || used <= this.#maxMemory - FREE_MEMORY
    if (used === heap && !isFree) this.#collectGarbage(cpu.user + cpu.system)
    this.#long = long > SHARES.overloaded ? this.#long + 1 : 0
    const full = this.#maxMemory > 0 && used > this.#maxMemory
    const now = full ? 'memory' : this.#long >= SAMPLES.overloaded ? 'event_loop' : null
    this.#fine =
      now === null && this.reason !== null && isFree && long < SHARES.recovered ? this.#fine + 1 : 0
    const next = now ?? (this.#fine >= SAMPLES.recovered ? null : this.reason)
    if (next !== this.reason) {
      this.reason = next
      const facts = { memory_percent: Math.round(used), tick_max_ms: Math.round(loop.ticks.max) }
      this.#parts.onChange(next, facts)
    }
    return next
  }

  /** @param {number} cpu share of a core */
  #collectGarbage(cpu) {
    const { clock, collect } = this.#parts
    const begin = clock()
    if (cpu >= IDLE_CPU || begin < this.#collectAt) return
    collect()
    const end = clock()
    this.#collectAt = end + Math.max(MIN_COLLECT_INTERVAL_MS, (end - begin) / COLLECT_SHARE)
  }
}
