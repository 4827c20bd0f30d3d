// The fleet's drones and what is known of the fleet, in memory and on disk.

import { Drone } from './drone.js'
import { Store } from './folder.js'
import { addTally, finalTally, zeroTally } from './snapshot.js'

/** @typedef {import('./folder.js').FleetState} FleetState */
/** @typedef {import('../providers/contract.js').Provider} Provider */
/** @typedef {'info' | 'warn' | 'error'} Level */
/** @typedef {(level: Level, text: string) => void} OnEvent */

export class DroneList {
  /** What survives the controller; `drones` is updated on save. @type {FleetState} */
  state
  #dir
  #store
  /** In the order of their shares. @type {Map<string, Drone>} */
  #drones = new Map()
  /** There is nothing to save. */
  #empty
  /** Serializes changes. @type {Promise<any>} */
  #turn = Promise.resolve()

  /** @param {string} dir @param {FleetState} state @param {OnEvent} onEvent */
  constructor(dir, state, onEvent) {
    this.#dir = dir
    this.state = state
    this.#empty = state.drones.length === 0
    this.#store = new Store(dir, text => onEvent('error', text))
    for (const known of state.drones) this.#drones.set(known.id, new Drone(known))
  }

  get dir() {
    return this.#dir
  }

  /** @returns {Drone[]} */
  get all() {
    return [...this.#drones.values()]
  }

  /** Drones that have a share: their launch is complete. */
  get members() {
    return this.all.filter(({ state }) => state.member)
  }

  get size() {
    return this.#drones.size
  }

  /** @param {string} id */
  get(id) {
    return this.#drones.get(id)
  }

  get options() {
    return { dir: this.#dir, flags: this.state.flags }
  }

  /** @param {string} id @param {string} [listen] */
  add(id, listen) {
    const address = listen === undefined ? {} : { listen }
    const initial = { handle: null, member: false, capacity: 0, start: '', restarts: 0 }
    const drone = new Drone({ id, ...initial, ...address, tally: zeroTally() })
    this.#empty = false
    this.#drones.set(id, drone)
    return drone
  }

  /** @param {Drone} drone its counts are added to the fleet's past */
  remove(drone) {
    addTally(this.state.past, finalTally(drone.state.tally, drone.gone === '' ? 'closed' : 'ended'))
    this.#drones.delete(drone.id)
    void drone.link?.close('stopped')
  }

  /** @returns {Promise<void>} */
  async save() {
    this.state.drones = this.all.map(drone => drone.state)
    if (!this.#empty) await this.#store.save(this.state)
  }

  async forget() {
    this.#empty = true
    await this.#store.remove()
  }

  /** Runs a change after all previous ones. @template T @param {() => Promise<T>} change @returns {Promise<T>} */
  inTurn(change) {
    const done = this.#turn.then(change)
    this.#turn = done.catch(() => {})
    return done
  }
}
