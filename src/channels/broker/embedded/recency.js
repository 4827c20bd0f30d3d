/** Base class of the entries of a RecencyList. It costs four fields, and no entry of a Map or Set. */
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
 * A doubly linked list from the least to the most recently used object. All steps take constant time; the first entry
 * of a Set whose oldest entries go all the time does not.
 * @template {Aged} T
 */
export class RecencyList {
  /** @type {T | null} */
  oldest = null
  /** @type {T | null} */
  newest = null

  /** Moves an object to the end; it leaves its earlier list. @param {T} aged @param {number} usedAt unix s */
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
