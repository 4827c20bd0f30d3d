import { performance } from 'node:perf_hooks'
import v8 from 'node:v8'
import { runInNewContext } from 'node:vm'

/** A young generation that has grown beyond this after a burst of connections is worth a collection, bytes. */
const YOUNG_BYTES = 6 * 1024 * 1024
/** Above this a collection takes too long to be asked for: about 1.5 ms for each MB. V8 then does it by itself, in steps. */
const HEAP_BYTES = 32 * 1024 * 1024
/** The time between two ticks, ms. */
export const TRIM_TICK_MS = 250
/** A loop that was busy for more than this part of a tick is not disturbed. */
const BUSY = 0.2
/**
 * V8 shrinks the young generation in a full collection, provided that little has been allocated for 5 s: as told by what came since the
 * last collection, so a small one goes ahead.
 */
const QUIET_TICKS = 1 + 5000 / TRIM_TICK_MS
/** Ticks between two full collections. */
const REST = 30_000 / TRIM_TICK_MS

/** @typedef {'minor' | 'major'} Extent of a collection: the young generation, or the whole heap */
/** @typedef {(extent: Extent) => void} Collect */

/** @returns {Collect} V8's collector, whether or not it was exposed on the command line */
export function collector() {
  if (!globalThis.gc) v8.setFlagsFromString('--expose-gc')
  const gc = globalThis.gc ?? runInNewContext('gc')
  // The V8 of Node.js 20 takes every object of options for a wish for a minor collection, also `{type: 'major'}`.
  return extent => (extent === 'major' ? gc() : gc({ type: 'minor' }))
}

/**
 * Gives memory back after a burst. Connecting thousands of clients makes V8 grow the part of the heap where new objects live to many
 * times of what a quiet worker needs, and it takes its time to shrink it: about 1 KB for each connection. One full collection after some
 * quiet seconds does it.
 */
export class HeapTrim {
  #collect
  #loop = performance.eventLoopUtilization()
  #quiet = 0
  #rest = 0

  /** @param {Collect} [collect] */
  constructor(collect = collector()) {
    this.#collect = collect
  }

  /** To be called every TRIM_TICK_MS. */
  tick() {
    const before = this.#loop
    this.#loop = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(this.#loop, before)
    this.#quiet = utilization > BUSY ? 0 : this.#quiet + 1
    if (this.#rest > 0) this.#rest--
    if (this.#rest > 0 || (this.#quiet !== 1 && this.#quiet !== QUIET_TICKS) || !worthIt()) return
    const full = this.#quiet === QUIET_TICKS
    if (full) this.#rest = REST
    this.#collect(full ? 'major' : 'minor')
  }
}

function worthIt() {
  if (v8.getHeapStatistics().used_heap_size > HEAP_BYTES) return false
  const young = v8.getHeapSpaceStatistics().find(space => space.space_name === 'new_space')
  return young !== undefined && young.physical_space_size > YOUNG_BYTES
}
