/** ms. Commands wait at least 500 ms for an answer, pongs seconds. */
const PAUSE_MS = 200

/** @param {number} ms of the whole thread: no event is handled meanwhile, and none is lost */
function sleepThread(ms) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

/**
 * Stops the event loop at the end of a turn, so that the next turn reads many pings at once. Without pauses, each of
 * fifty idle processes on two cores wakes up a hundred times a second for a few pings, with cold caches. With pauses a
 * ping costs half as much.
 */
export class ReadPause {
  #sleep
  #isDue = false

  /** @param {(ms: number) => void} [sleep] */
  constructor(sleep = sleepThread) {
    this.#sleep = sleep
  }

  /** Pauses once at the end of this turn. */
  request() {
    if (this.#isDue) return
    this.#isDue = true
    setImmediate(() => {
      this.#isDue = false
      this.#sleep(PAUSE_MS)
    })
  }
}
