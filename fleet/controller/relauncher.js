// Looks for disconnected drones, and relaunches those that died.

import { COMMAND } from '../../src/base/version.js'

/** @typedef {import('./drone.js').Drone} Drone */
/** @typedef {import('../providers/contract.js').Provider} Provider */
/** @typedef {import('../schema.js').Handle} Handle */

/** ms from a lost connection to the first look at the drone: with `autoRelaunch`, and without. */
const FIRST_LOOK = { auto: 200, other: 15_000 }
const NEXT_LOOK = { auto: 2000, other: 60_000 }
/** Longest pause before a drone that keeps dying is relaunched, ms; it doubles up to this. */
const LONGEST = 60_000
/** ms after which a relaunched drone counts as healthy. */
const HEALTHY = 60_000

export class Relauncher {
  #provider
  #find
  #restart
  #onEvent
  /** @type {Map<string, NodeJS.Timeout>} */
  #looks = new Map()
  /** Relaunches per drone. @type {Map<string, {count: number, at: number}>} */
  #starts = new Map()

  /**
   * @param {object} options @param {Provider} options.provider
   * @param {() => Promise<Handle[]>} options.find the run's drones
   * @param {(drone: Drone) => Promise<void>} options.restart
   * @param {(level: 'info' | 'warn' | 'error', text: string) => void} options.onEvent
   */
  constructor({ provider, find, restart, onEvent }) {
    this.#provider = provider
    this.#find = find
    this.#restart = restart
    this.#onEvent = onEvent
  }

  /** For a disconnected drone. @param {Drone} drone */
  watch(drone) {
    this.#later(drone, this.#provider.autoRelaunch ? FIRST_LOOK.auto : FIRST_LOOK.other)
  }

  /** @param {Drone} drone @param {number} wait ms */
  #later(drone, wait) {
    this.forget(drone.id)
    this.#looks.set(
      drone.id,
      setTimeout(() => void this.#look(drone), wait),
    )
  }

  /** @param {Drone} drone */
  async #look(drone) {
    const { id } = drone
    const done = () => drone.up || drone.leaving || !this.#looks.has(id)
    if (done()) return
    let wait = this.#provider.autoRelaunch ? NEXT_LOOK.auto : NEXT_LOOK.other
    try {
      const found = (await this.#find()).find(handle => handle.id === id)
      if (done()) return
      if (found === undefined || found.state === 'gone') {
        const why = found?.note ? `: ${found.note}` : ''
        if (!this.#provider.autoRelaunch) {
          if (drone.gone === '')
            this.#onEvent('error', `${id} is gone${why}; \`${COMMAND} fleet restart ${id}\` starts it anew`)
          drone.gone = why || 'gone'
        } else wait = await this.#relaunch(drone, why, wait)
      }
    } catch (error) {
      if (!done()) this.#onEvent('warn', `${id}: ${error.message}`)
    }
    if (!done()) this.#later(drone, wait)
  }

  /**
   * @param {Drone} drone @param {string} why @param {number} wait ms until the next look, if it starts
   * @returns {Promise<number>} ms until the next look
   */
  async #relaunch(drone, why, wait) {
    const last = this.#starts.get(drone.id)
    const now = Date.now()
    const count = last !== undefined && now - last.at < HEALTHY ? last.count : 0
    const due = last === undefined ? now : last.at + Math.min(LONGEST, 1000 * 2 ** (count - 1))
    if (count > 0 && now < due) return due - now
    this.#onEvent('warn', `${drone.id} died${why}; relaunching it`)
    this.#starts.set(drone.id, { count: count + 1, at: now })
    await this.#restart(drone)
    return wait
  }

  /** @param {string} id */
  forget(id) {
    clearTimeout(this.#looks.get(id))
    this.#looks.delete(id)
  }

  close() {
    for (const id of [...this.#looks.keys()]) this.forget(id)
  }
}
