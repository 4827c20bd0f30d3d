// Figures of batched channels: flushes, their items, and publications that newer ones have replaced.

/** @import { BatchCounts } from './schema.js' */

/** Upper bounds of the counted items of a flush. */
export const BATCH_BOUNDS = Object.freeze([1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000])

/** @returns {BatchCounts} */
export const noBatchCounts = () => ({
  items: 0,
  within: BATCH_BOUNDS.map(() => 0),
  flushes: {},
  // A namespace may be called `constructor`.
  conflated: Object.create(null),
})

/** @param {Record<string, number>} sum is changed @param {Record<string, number>} more */
function addNamed(sum, more) {
  for (const name of Object.keys(more)) sum[name] = (sum[name] ?? 0) + more[name]
}

/** @param {BatchCounts} sum is changed @param {BatchCounts} more */
export function addBatchCounts(sum, { items, within, flushes, conflated }) {
  sum.items += items
  for (let i = 0; i < within.length; i++) sum.within[i] += within[i]
  addNamed(sum.flushes, flushes)
  addNamed(sum.conflated, conflated)
}

/** Figures of one worker. */
export class BatchStats {
  /** `within`: flushes of each slot, not yet those of the slots below. */
  #counts = noBatchCounts()

  /** @param {string} reason @param {number} items */
  flushed(reason, items) {
    const { flushes, within } = this.#counts
    this.#counts.items += items
    flushes[reason] = (flushes[reason] ?? 0) + 1
    const slot = BATCH_BOUNDS.findIndex(bound => items <= bound)
    if (slot >= 0) within[slot]++
  }

  /** A newer publication has replaced one. @param {string} namespace '' for channels without one */
  conflated(namespace) {
    const { conflated } = this.#counts
    conflated[namespace] = (conflated[namespace] ?? 0) + 1
  }

  /** @returns {BatchCounts} since the last drain */
  drain() {
    const counts = this.#counts
    for (let slot = 1; slot < BATCH_BOUNDS.length; slot++) counts.within[slot] += counts.within[slot - 1]
    this.#counts = noBatchCounts()
    return counts
  }
}
