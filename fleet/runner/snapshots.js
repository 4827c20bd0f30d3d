// Waits for snapshots of the fleet, in a run that may be interrupted.

import { once } from 'node:events'

/** @import { Fleet } from '../controller/fleet.js' */
/** @import { FleetSnapshot } from '../schema.js' */

/** The run was cancelled; its measurements are kept. */
export class Interrupted extends Error {}

/** ms without a snapshot until the fleet counts as lost. */
const SILENCE = 30_000

export class Snapshots {
  #fleet
  #signal
  /** @type {Promise<never>} */
  #fault

  /** @param {Fleet} fleet @param {AbortSignal} signal ends every wait @param {Promise<never>} fault the gateway is lost */
  constructor(fleet, signal, fault) {
    this.#fleet = fleet
    this.#signal = signal
    this.#fault = Promise.race([aborted(signal), fault])
    this.#fault.catch(() => {})
  }

  get last() {
    return this.#fleet.snapshot()
  }

  /** @template T @param {Promise<T>} work @returns {Promise<T>} rejects on an interruption */
  race(work) {
    work.catch(() => {})
    return Promise.race([this.#fault, work])
  }

  /** @returns {Promise<FleetSnapshot>} the next one @throws {Interrupted} */
  async next() {
    if (this.#signal.aborted) throw new Interrupted()
    const late = AbortSignal.timeout(SILENCE)
    try {
      const [snapshot] = await this.race(once(this.#fleet, 'snapshot', { signal: late }))
      return snapshot
    } catch (error) {
      throw late.aborted ? new Error(`no snapshot from the fleet for ${SILENCE / 1000} s`) : error
    }
  }

  /** First matching snapshot. @param {(snapshot: FleetSnapshot, seconds: number) => boolean} done seconds since the call */
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
