/** @typedef {{dueSecond: number}} Expiring `dueSecond`: its bucket, 0 = none; set only by Expiry */

/**
 * Items that expire, in one bucket for each second instead of a timer for each item. An item with a postponed expiry
 * stays in its bucket and moves on when the sweep finds it, so postponing costs nothing.
 * @template {Expiring} T
 */
export class Expiry {
  /** @type {Map<number, Set<T>>} second -> items */
  #buckets = new Map()
  #swept
  #due

  /**
   * @param {number} now ms
   * @param {(thing: T, now: number) => number} due called for each item of a due bucket: removes what has expired, and
   *   returns the time in ms of the next check, 0 = never
   */
  constructor(now, due) {
    this.#swept = Math.floor(now / 1000)
    this.#due = due
  }

  /** @param {T} thing @param {number} at ms; ignored if an earlier time is scheduled */
  schedule(thing, at) {
    const second = Math.max(Math.ceil(at / 1000), this.#swept + 1)
    if (thing.dueSecond !== 0) {
      if (thing.dueSecond <= second) return
      this.#buckets.get(thing.dueSecond)?.delete(thing)
    }
    thing.dueSecond = second
    const bucket = this.#buckets.get(second)
    if (bucket) bucket.add(thing)
    else this.#buckets.set(second, new Set([thing]))
  }

  /** @param {number} now ms */
  sweep(now) {
    const until = Math.floor(now / 1000)
    // After the machine has slept long there are fewer buckets than seconds.
    const due =
      until - this.#swept > this.#buckets.size
        ? [...this.#buckets.keys()].filter(second => second <= until).sort((a, b) => a - b)
        : Array.from({ length: until - this.#swept }, (_, i) => this.#swept + 1 + i)
    this.#swept = until
    for (const second of due) {
      const bucket = this.#buckets.get(second)
      if (!bucket) continue
      this.#buckets.delete(second)
      for (const thing of bucket) {
        thing.dueSecond = 0
        const next = this.#due(thing, now)
        if (next > 0) this.schedule(thing, next)
      }
    }
  }
}
