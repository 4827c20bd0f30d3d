/**
 * Collects garbage in one worker after another, so that no two stand still together.
 *
 * interval   |------------------------|
 * worker 0   x                        x
 * worker 1            x                        x
 * worker 2                     x
 */
export class GcRounds {
  #next = 0
  #timer

  /**
   * @param {number} interval ms between two collections of the same worker
   * @param {number} workers
   * @param {(worker: number) => void} collect
   */
  constructor(interval, workers, collect) {
    this.#timer = setInterval(() => {
      collect(this.#next)
      this.#next = (this.#next + 1) % workers
    }, interval / workers)
  }

  stop() {
    clearInterval(this.#timer)
  }
}
