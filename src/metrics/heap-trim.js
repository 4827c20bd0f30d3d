import { performance } from 'node:perf_hooks'
import v8 from 'node:v8'
import { runInNewContext } from 'node:vm'

/** A young generation above this size is worth a collection, bytes. */
const YOUNG_BYTES = 6 * 1024 * 1024
/** Heap size above which a collection blocks too long (about 1.5 ms per MB); V8 then collects incrementally, bytes. */
const HEAP_BYTES = 32 * 1024 * 1024
/** Interval of `tick` calls, ms. */
export const TRIM_TICK_MS = 250
/** No collection if the event loop was busy for more than this share of a tick. */
const MAX_UTILIZATION = 0.2
/**
 * V8 shrinks the young generation in a full collection if little was allocated in 5 s. It measures that since the
 * last collection, so a minor one comes first. One tick more than 5 s: after 5.00 s V8 may still count the burst.
 */
const QUIET_TICKS = 2 + 5000 / TRIM_TICK_MS
/** Ticks between two full collections. */
const COOLDOWN_TICKS = 30_000 / TRIM_TICK_MS

/** @typedef {'minor' | 'major'} Extent of a collection: the young generation, or the whole heap */
/** @typedef {(extent: Extent) => void} Collect */

/** @returns {Collect} V8's collector; works without --expose-gc */
export function collector() {
  if (!globalThis.gc) v8.setFlagsFromString('--expose-gc')
  const gc = globalThis.gc ?? runInNewContext('gc')
  // With any options object, also `{type: 'major'}`, the V8 of Node.js 20 runs a minor collection.
  return extent => (extent === 'major' ? gc() : gc({ type: 'minor' }))
}

/**
 * Returns memory after a burst. Thousands of connects grow V8's young generation far beyond the need of a quiet
 * worker (about 1 KB per connection), and V8 shrinks it late. A minor, then a full collection after quiet seconds
 * shrinks it.
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

  /** Call it every TRIM_TICK_MS. */
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
