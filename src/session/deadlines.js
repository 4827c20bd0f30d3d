/**
 * @typedef {object} Deadline
 * @property {number} at ms
 * @property {boolean} gone whether the deadline no longer applies
 * @property {() => void} end
 */

/** Minimum heap size for pruning. */
const FEW = 1024

/**
 * Deadlines of sessions and subscriptions: a binary heap, checked by the worker's tick. Whenever the heap has doubled,
 * entries that no longer apply are removed. Otherwise clients with long-lived tokens that reconnect often would keep
 * their former sessions in memory.
 */
export class Deadlines {
  /** @type {Deadline[]} */
  #heap = []
  #pruneAt = FEW

  get size() {
    return this.#heap.length
  }

  /** @param {Deadline} deadline */
  add(deadline) {
    const heap = this.#heap
    let i = heap.push(deadline) - 1
    while (i > 0) {
      const parent = (i - 1) >> 1
      if (heap[parent].at <= heap[i].at) break
      ;[heap[parent], heap[i]] = [heap[i], heap[parent]]
      i = parent
    }
    if (heap.length >= this.#pruneAt) this.#prune()
  }

  #prune() {
    // A sorted list is a heap.
    this.#heap = this.#heap.filter(({ gone }) => !gone).sort((a, b) => a.at - b.at)
    this.#pruneAt = Math.max(FEW, this.#heap.length * 2)
  }

  /** Removes the earliest. @returns {Deadline} */
  #take() {
    const heap = this.#heap
    const first = heap[0]
    const last = /** @type {Deadline} */ (heap.pop())
    if (heap.length === 0) return first
    heap[0] = last
    for (let i = 0; ; ) {
      let least = i
      for (const child of [2 * i + 1, 2 * i + 2]) {
        if (child < heap.length && heap[child].at < heap[least].at) least = child
      }
      if (least === i) return first
      ;[heap[least], heap[i]] = [heap[i], heap[least]]
      i = least
    }
  }

  /** @param {number} now ms */
  tick(now) {
    while (this.#heap.length > 0 && this.#heap[0].at <= now) {
      const deadline = this.#take()
      if (!deadline.gone) deadline.end()
    }
  }
}
