// Work in slices: long work stops after a few ms and goes on in the next turn of the event loop, so that messages,
// connects and timers do not wait for the end of it.

/** Time for work in one turn of the event loop, ms. */
const SLICE_MS = 3
/** Steps between two readings of the clock. */
const STEPS_PER_READING = 8

/**
 * Repeats a step for about SLICE_MS.
 * @param {() => boolean} step does a part of the work, at most some 100 µs; false: nothing was left to do
 * @returns {boolean} whether work is left
 */
export function runSlice(step) {
  const end = performance.now() + SLICE_MS
  for (let steps = 1; step(); steps++) {
    if (steps % STEPS_PER_READING === 0 && performance.now() >= end) return true
  }
  return false
}

/**
 * Work that is done in slices, one in each turn of the event loop, until its step returns false. Slices run after the
 * reads of their turn. Between two of them anything may happen: a step MUST NOT rely on what an earlier one has seen.
 */
export class SlicedWork {
  #step
  #done
  #running = false
  #slice = () => {
    if (runSlice(this.#step)) {
      setImmediate(this.#slice)
      return
    }
    this.#running = false
    this.#done()
  }

  /** @param {() => boolean} step as of `runSlice` @param {() => void} [done] called after the last slice */
  constructor(step, done = () => {}) {
    this.#step = step
    this.#done = done
  }

  /** Whether slices are due. */
  get running() {
    return this.#running
  }

  /** Starts in this turn of the event loop, after its reads. No effect while it runs. */
  start() {
    if (this.#running) return
    this.#running = true
    setImmediate(this.#slice)
  }

  /** Does the first slice now. No effect while it runs. */
  run() {
    if (this.#running) return
    this.#running = true
    this.#slice()
  }
}

/** Items of a SlicedQueue that are handled at once in each turn of the event loop. */
const AT_ONCE = 32

/**
 * Items that are handled when they are added, as long as they are few. When many are added in one turn of the event
 * loop, the rest is handled in slices.
 * @template T
 */
export class SlicedQueue {
  #handle
  /** @type {T[]} the newest is handled first */
  #waiting = []
  /** Handled at once in this turn. */
  #handled = 0
  #slices = new SlicedWork(() => this.#next())
  #reset = () => {
    this.#handled = 0
  }

  /** @param {(item: T) => void} handle must not throw */
  constructor(handle) {
    this.#handle = handle
  }

  /** Items not handled yet. */
  get size() {
    return this.#waiting.length
  }

  /** @param {T} item */
  add(item) {
    if (this.#handled === AT_ONCE || this.#waiting.length > 0) {
      this.#waiting.push(item)
      this.#slices.start()
      return
    }
    if (this.#handled++ === 0) setImmediate(this.#reset)
    this.#handle(item)
  }

  #next() {
    const item = this.#waiting.pop()
    if (item === undefined) return false
    this.#handle(item)
    return true
  }
}

/**
 * Visits of many items, in slices. They are done in the order of the calls: a later one waits for the earlier ones.
 * @template T
 */
export class SlicedVisits {
  /** @type {{items: T[], visited: number, visit: (item: T) => void}[]} oldest first */
  #rounds = []
  #slices = new SlicedWork(() => this.#next())

  /** Whether visits are due. */
  get busy() {
    return this.#rounds.length > 0
  }

  /**
   * Begins at once, unless an earlier call is not complete.
   * @param {T[]} items not changed meanwhile @param {(item: T) => void} visit must not throw
   */
  add(items, visit) {
    this.#rounds.push({ items, visited: 0, visit })
    this.#slices.run()
  }

  #next() {
    const round = this.#rounds[0]
    if (round === undefined) return false
    if (round.visited < round.items.length) round.visit(round.items[round.visited++])
    else this.#rounds.shift()
    return true
  }
}
