// Long work runs in slices of a few ms, one per turn of the event loop, so that messages and timers do not wait.

const SLICE_MS = 3
const STEPS_PER_READING = 8

/**
 * @param {() => boolean} step does part of the work, at most some 100 µs; false: no work left
 * @returns {boolean} whether work is left
 */
export function runSlice(step) {
  const end = performance.now() + SLICE_MS
  for (let steps = 1; step(); steps++) {
    if (steps % STEPS_PER_READING === 0 && performance.now() >= end) return true
  }
  return false
}

/** Work in slices until `step` returns false. Steps MUST NOT rely on state read by earlier steps. */
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

  /** @param {() => boolean} step see `runSlice` @param {() => void} [done] called after the last slice */
  constructor(step, done = () => {}) {
    this.#step = step
    this.#done = done
  }

  get running() {
    return this.#running
  }

  /** Starts in this turn of the event loop, after its reads. No effect while running. */
  start() {
    if (this.#running) return
    this.#running = true
    setImmediate(this.#slice)
  }

  /** Runs the first slice now. No effect while running. */
  run() {
    if (this.#running) return
    this.#running = true
    this.#slice()
  }
}

/** Items that a SlicedQueue handles immediately per turn of the event loop. */
const AT_ONCE = 32

/** Handles AT_ONCE items immediately, more in slices. @template T */
export class SlicedQueue {
  #handle
  /** @type {T[]} newest handled first */
  #waiting = []
  #handled = 0
  #slices = new SlicedWork(() => this.#next())
  #reset = () => {
    this.#handled = 0
  }

  /** @param {(item: T) => void} handle must not throw */
  constructor(handle) {
    this.#handle = handle
  }

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

/** Visits items in slices, in call order. @template T */
export class SlicedVisits {
  /** @type {{items: T[], visited: number, visit: (item: T) => void}[]} oldest first */
  #rounds = []
  #slices = new SlicedWork(() => this.#next())

  get busy() {
    return this.#rounds.length > 0
  }

  /** @param {T[]} items must not change @param {(item: T) => void} visit must not throw */
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
