/**
 * @template T
 * @param {Iterator<T>} iterator @param {number} count @returns {T[]} next `count` items, fewer at the end
 */
export function nextItems(iterator, count) {
  const items = []
  while (items.length < count) {
    const { done, value } = iterator.next()
    if (done) break
    items.push(value)
  }
  return items
}

/**
 * Visits all values of a map over a number of ticks, to avoid bursts of commands for renewals.
 * @template T
 */
export class Rotation {
  /** @type {Iterator<T> | null} the rest of this round */
  #round = null
  #share = 0
  #values
  #ticks
  #batch

  /**
   * @param {{values: () => Iterator<T>, readonly size: number}} values of a map
   * @param {{ticks: number, batch: number}} options `batch`: values per visit
   */
  constructor(values, { ticks, batch }) {
    this.#values = values
    this.#ticks = ticks
    this.#batch = batch
  }

  get running() {
    return this.#round !== null
  }

  start() {
    this.#round = this.#values.values()
    this.#share = 0
  }

  /** Visits one tick's share. @param {number} min share @param {(batch: T[]) => void} visit */
  tick(min, visit) {
    this.#share = Math.max(this.#share, min, Math.ceil(this.#values.size / this.#ticks))
    for (let left = this.#share; left > 0 && this.#round; left -= this.#batch) {
      const count = Math.min(left, this.#batch)
      const batch = nextItems(this.#round, count)
      if (batch.length < count) this.#round = null
      visit(batch)
    }
  }
}
