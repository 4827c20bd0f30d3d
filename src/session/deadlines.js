/**
 * @typedef {object} Deadline
 * @property {number} at ms
 * @property {() => void} end
 */

/**
 * Times at which something of a session ends: a binary heap, looked at by the worker's tick. An entry is not taken out
 * when its reason goes away; `end` looks whether the reason is still there.
 */
export class Deadlines {
  /** @type {Deadline[]} */
  #heap = []

  get size() {
    return this.#heap.length
  }

  /**
   * @param {number} at ms
   * @param {() => void} end
   */
  add(at, end) {
    const heap = this.#heap
    let i = heap.push({ at, end }) - 1
    while (i > 0) {
      const parent = (i - 1) >> 1
      if (heap[parent].at <= heap[i].at) break
      ;[heap[parent], heap[i]] = [heap[i], heap[parent]]
      i = parent
    }
  }

  /** @returns {Deadline} the earliest */
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
    while (this.#heap.length > 0 && this.#heap[0].at <= now) this.#take().end()
  }
}
