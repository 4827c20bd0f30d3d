/**
 * @template T
 * @param {Iterator<T>} iterator @param {number} count @returns {T[]} the next `count` items: fewer at the end
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
 * Visits all values of a map within a number of ticks, a share in each tick: so the leases and entries of a worker are
 * renewed without a burst of commands.
 * @template T
 */
export class Rotation {
  /** @type {Iterator<T> | null} the rest of this round */
  #round = null
  #share = 0
  #values
  #ticks
  #batch

  /** @param {Map<string, T>} values @param {{ticks: number, batch: number}} options `batch`: values visited at once */
  constructor(values, { ticks, batch }) {
    this.#values = values
    this.#ticks = ticks
    this.#batch = batch
  }

  get running() {
    return this.#round !== null
  }

  /** Begins a round. */
  start() {
    this.#round = this.#values.values()
    this.#share = 0
  }

  /** Visits the share of one tick. @param {number} least values @param {(batch: T[]) => void} visit */
  tick(least, visit) {
    this.#share = Math.max(this.#share, least, Math.ceil(this.#values.size / this.#ticks))
    for (let left = this.#share; left > 0 && this.#round; left -= this.#batch) {
      const count = Math.min(left, this.#batch)
      const batch = nextItems(this.#round, count)
      if (batch.length < count) this.#round = null
      visit(batch)
    }
  }
}
