import { performance } from 'node:perf_hooks'
import v8 from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Minimum size of the young generation for a collection. */
const YOUNG_BYTES = 6 * 1024 * 1024
/** Maximum size of the heap for a collection (1.5 ms per MB); above it, V8 collects incrementally. */
const HEAP_BYTES = 32 * 1024 * 1024
/** ms */
export const TRIM_TICK_MS = 250
/** No collection if the event loop was busy for more than this share of a tick. */
const MAX_UTILIZATION = 0.2
/**
 * V8 shrinks the young generation in a full collection if little was allocated in the 5 s since the last one, so a
 * minor one runs first. One tick more: after 5.00 s V8 may still count the burst.
 */
const QUIET_TICKS = 2 + 5000 / TRIM_TICK_MS
/** Ticks between two full collections. */
const COOLDOWN_TICKS = 30_000 / TRIM_TICK_MS

/** @typedef {'minor' | 'major'} Extent of a collection */
/** @typedef {(extent: Extent) => void} Collect */

/** Works without --expose-gc. @returns {Collect} */
export function collector() {
  if (!globalThis.gc) v8.setFlagsFromString('--expose-gc')
  const gc = globalThis.gc ?? runInNewContext('gc')
  // Node.js 20 runs a minor collection for any options, also `{type: 'major'}`.
  return extent => (extent === 'major' ? gc() : gc({ type: 'minor' }))
}

/**
 * Frees memory after a burst: connects grow V8's young generation (about 1 KB each), and V8 shrinks it late. A minor,
 * then a full collection after quiet seconds shrink it.
 */
export class HeapTrim {
  #collect
  #loop = performance.eventLoopUtilization()
  #quietTicks = 0
  #cooldown = 0

  /** @param {Collect} [collect] */
  constructor(collect = collector()) {
    this.#collect = collect
  }

  tick() {
    const before = this.#loop
    this.#loop = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(this.#loop, before)
    this.#quietTicks = utilization > MAX_UTILIZATION ? 0 : this.#quietTicks + 1
    if (this.#cooldown > 0) this.#cooldown--
    if (this.#cooldown > 0 || (this.#quietTicks !== 1 && this.#quietTicks !== QUIET_TICKS) || !isYoungLarge())
      return
    const full = this.#quietTicks === QUIET_TICKS
    if (full) this.#cooldown = COOLDOWN_TICKS
    this.#collect(full ? 'major' : 'minor')
  }
}

function isYoungLarge() {
  if (v8.getHeapStatistics().used_heap_size > HEAP_BYTES) return false
  const young = v8.getHeapSpaceStatistics().find(space => space.space_name === 'new_space')
  return young !== undefined && young.physical_space_size > YOUNG_BYTES
}
