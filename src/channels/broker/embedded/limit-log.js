/** Interval of the warnings, ms. */
const INTERVAL_MS = 60_000

/** Warnings that the limit of the stored bytes is reached. */
export class LimitLog {
  /** Of the last warning, without and with loss of live history. */
  #last = [0, 0]
  #maxBytes
  #log
  #clock

  /** @param {number} maxBytes @param {import('pino').Logger} log @param {() => number} clock ms */
  constructor(maxBytes, log, clock) {
    this.#maxBytes = maxBytes
    this.#log = log
    this.#clock = clock
  }

  /** @param {number} bytes @param {boolean} live the history of channels with subscribers goes */
  reached(bytes, live) {
    const now = this.#clock()
    if (now - this.#last[Number(live)] < INTERVAL_MS) return
    this.#last[Number(live)] = now
    const whose = live ? 'the history of channels with subscribers' : 'unused channels and idempotency keys'
    this.#log.warn({ bytes, max_bytes: this.#maxBytes }, `engine.memory.max_bytes reached: dropping ${whose}`)
  }
}
