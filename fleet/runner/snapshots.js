// Waits for snapshots of the fleet, in a run that may be interrupted.

/** @typedef {import('../schema.js').FleetSnapshot} FleetSnapshot */

/** The run was cancelled; its measurements are kept. */
export class Interrupted extends Error {}

/** ms without a snapshot after which the fleet counts as lost. */
const SILENCE = 30_000

export class Snapshots {
  #fleet
  #signal
  /** @type {Promise<never>} */
  #broken

  /**
   * @param {import('../controller/fleet.js').Fleet} fleet @param {AbortSignal} signal ends every wait
   * @param {Promise<never>} fault rejects when the tested gateway is lost
   */
  constructor(fleet, signal, fault) {
    this.#fleet = fleet
    this.#signal = signal
    this.#broken = Promise.race([aborted(signal), fault])
    this.#broken.catch(() => {})
  }

  get last() {
    return this.#fleet.snapshot()
  }

  /** @template T @param {Promise<T>} work @returns {Promise<T>} rejects with the reason of an interruption */
  race(work) {
    work.catch(() => {})
    return Promise.race([this.#broken, work])
  }

  /** @returns {Promise<FleetSnapshot>} the next one @throws {Interrupted} */
  async next() {
    if (this.#signal.aborted) throw new Interrupted()
    /** @type {(snapshot: FleetSnapshot) => void} */
    let listener = () => {}
    /** @type {NodeJS.Timeout | undefined} */
    let timer
    const next = new Promise((resolve, reject) => {
      listener = resolve
      timer = setTimeout(() => reject(new Error('the fleet sends no more snapshots')), SILENCE)
      this.#fleet.on('snapshot', listener)
    })
    try {
      return await this.race(next)
    } finally {
      clearTimeout(timer)
      this.#fleet.off('snapshot', listener)
    }
  }

  /**
   * @param {(snapshot: FleetSnapshot, seconds: number) => boolean} done `seconds`: since the call
   * @returns {Promise<FleetSnapshot>} the first snapshot for which it is true
   */
  async until(done) {
    const began = Date.now()
    for (;;) {
      const snapshot = await this.next()
      if (done(snapshot, (Date.now() - began) / 1000)) return snapshot
    }
  }
}

/** @param {AbortSignal} signal @returns {Promise<never>} */
const aborted = signal =>
  new Promise((_, reject) => {
    if (signal.aborted) reject(new Interrupted())
    signal.addEventListener('abort', () => reject(new Interrupted()), { once: true })
  })
