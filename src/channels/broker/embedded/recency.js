/** Base class of the entries of a RecencyList: four fields instead of a Map or Set entry. */
export class Aged {
  // Written by the list only.
  /** @type {RecencyList<any> | null} */
  list = null
  /** @type {any} */
  older = null
  /** @type {any} */
  newer = null
  /** Last use, unix s: whole seconds need no allocation. */
  usedAt = 0
}

/**
 * Doubly linked, from least to most recently used: a Set finds its first entry slowly after many removals.
 * @template {Aged} T
 */
export class RecencyList {
  /** @type {T | null} */
  oldest = null
  /** @type {T | null} */
  newest = null

  /** Moves an object here, to the end, from any list. @param {T} aged @param {number} usedAt unix s */
  add(aged, usedAt) {
    aged.list?.remove(aged)
    aged.list = this
    aged.usedAt = usedAt
    aged.older = this.newest
    if (this.newest === null) this.oldest = aged
    else this.newest.newer = aged
    this.newest = aged
  }

  /** @param {T} aged in this list */
  remove(aged) {
    const { older, newer } = aged
    if (older === null) this.oldest = newer
    else older.newer = newer
    if (newer === null) this.newest = older
    else newer.older = older
    aged.list = aged.older = aged.newer = null
  }

  /** From the oldest to the newest. @returns {Generator<T>} */
  *[Symbol.iterator]() {
    for (let aged = this.oldest; aged !== null; aged = aged.newer) yield aged
  }
}
