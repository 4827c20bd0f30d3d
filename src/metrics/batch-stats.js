import { BATCH_BOUNDS } from './table.js'

/** @import { BatchCounts } from './schema.js' */

/** @returns {BatchCounts} */
export const noBatchCounts = () => ({
  items: 0,
  within: BATCH_BOUNDS.map(() => 0),
  flushes: {},
  // A namespace may be called `constructor`.
  conflated: Object.create(null),
})

export class BatchStats {
  /** `within` is not cumulative here. */
  #counts = noBatchCounts()

  /** @param {string} reason @param {number} items */
  flushed(reason, items) {
    const { flushes, within } = this.#counts
    this.#counts.items += items
    flushes[reason] = (flushes[reason] ?? 0) + 1
    const slot = BATCH_BOUNDS.findIndex(bound => items <= bound)
    if (slot >= 0) within[slot]++
  }

  /** @param {string} namespace '' for channels without one */
  conflated(namespace) {
    const { conflated } = this.#counts
    conflated[namespace] = (conflated[namespace] ?? 0) + 1
  }

  drain() {
    const counts = this.#counts
    for (let slot = 1; slot < BATCH_BOUNDS.length; slot++) counts.within[slot] += counts.within[slot - 1]
    this.#counts = noBatchCounts()
    return counts
  }
}
