// Waiting for the fleet, a snapshot at a time, in a run that may be broken off.

/** @typedef {import('../schema.js').FleetSnapshot} FleetSnapshot */

/** Somebody wants the run to end; what was measured so far is kept. */
export class Interrupted extends Error {}

/** A fleet that says nothing for so long is no longer there, ms. */
const SILENCE = 30_000

/** The fleet's snapshots, waited for. */
export class Snapshots {
  #fleet
  #signal
  /** @type {Promise<never>} */
  #broken

  /**
   * @param {import('../controller/fleet.js').Fleet} fleet
   * @param {AbortSignal} signal that breaks off every wait
   * @param {Promise<never>} fault rejects when what is measured is no longer there
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

  /**
   * @template T
   * @param {Promise<T>} work
   * @returns {Promise<T>} rejects with what broke the run off
   */
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
      timer = setTimeout(() => reject(new Error('the fleet says nothing any more')), SILENCE)
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
   * @param {(snapshot: FleetSnapshot, seconds: number) => boolean} done of a snapshot, and of the seconds since the first
   * @returns {Promise<FleetSnapshot>} the first that is
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
