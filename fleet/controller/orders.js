// What the drones are told to do.

import { Ramp } from './ramp.js'
import { beginsPublishing, contradiction, settingsOf } from './shares.js'
import { tell } from './tell.js'

/** @typedef {import('../schema.js').FleetSettings} FleetSettings */
/** @typedef {import('./drone.js').Drone} Drone */

export class Orders {
  #roster
  #onEvent
  /** @type {Ramp | null} */
  #ramp = null

  /**
   * @param {import('./roster.js').Roster} roster
   * @param {import('./roster.js').OnEvent} onEvent
   */
  constructor(roster, onEvent) {
    this.#roster = roster
    this.#onEvent = onEvent
  }

  /** Goes on with what a controller before this one had begun. */
  resume() {
    const { ramp } = this.#roster.state
    if (ramp !== null) this.#runRamp(ramp)
  }

  /**
   * @param {Drone[]} drones
   * @returns {Promise<import('./tell.js').Told>}
   */
  #tell(drones) {
    const { members, state } = this.#roster
    const capacities = members.map(drone => drone.state.capacity)
    const shares = settingsOf(state.settings, capacities, state)
    const wanted = new Map(members.map((drone, i) => [drone.id, shares[i]]))
    const { revision } = state
    return tell(drones, drone => ({ revision, settings: wanted.get(drone.id) }))
  }

  /**
   * Tells one that has just called.
   * @param {Drone} drone
   */
  greet(drone) {
    return this.#roster.inTurn(async () => {
      const { refusals, silent } = await this.#tell([drone])
      for (const text of [...refusals, ...silent]) this.#onEvent('warn', text)
    })
  }

  /**
   * Tells all drones what is wanted now.
   * @returns {Promise<string[]>} what some of them have against it, a line each
   */
  async #tellAll() {
    const { state } = this.#roster
    state.revision++
    const { n } = state.settings
    const most = Math.max(n, state.ramp?.to ?? 0)
    state.base = most === 0 ? 0 : Math.max(state.base, most)
    await this.#roster.save()
    const { refusals, silent } = await this.#tell(this.#roster.members)
    for (const text of silent) this.#onEvent('warn', text)
    return refusals
  }

  /**
   * The drones are others than before: their numbers are laid out anew, and their shares.
   */
  async relay() {
    this.#roster.state.base = 0
    for (const text of await this.#tellAll()) this.#onEvent('warn', text)
    this.shortfall(this.#roster.state.settings.n)
  }

  /**
   * @param {FleetSettings} after
   * @throws {Error} one line: a drone refuses. All is as it was before, then
   */
  async #change(after) {
    const { state } = this.#roster
    const before = { settings: state.settings, base: state.base, publishFrom: state.publishFrom }
    // By the clock of this machine: whoever subscribed before it, subscribed before the first message.
    if (beginsPublishing(state.settings, after)) state.publishFrom = Date.now()
    state.settings = after
    const refusals = await this.#tellAll()
    if (refusals.length === 0) return
    Object.assign(state, before)
    await this.#tellAll()
    throw new Error(refusals.join('; '))
  }

  /**
   * @param {Partial<FleetSettings>} partial
   * @returns {Promise<string[]>} what a person should know, a line each
   * @throws {Error} one line
   */
  set(partial) {
    return this.#roster.inTurn(async () => {
      const after = { ...this.#roster.state.settings, ...partial }
      const fault = contradiction(after)
      if (fault !== '') throw new Error(fault)
      if (partial.n !== undefined) this.endRamp('n was set')
      await this.#change(after)
      return this.shortfall(after.n)
    })
  }

  /**
   * @param {number} n connections
   * @returns {string[]} a line, if the drones cannot hold so many
   */
  shortfall(n) {
    const { members } = this.#roster
    const capacity = members.reduce((sum, { state }) => sum + state.capacity, 0)
    if (n <= capacity || members.length === 0) return []
    const line = `${n} connections are more than the drones can hold: ${capacity}, ${n - capacity} too few`
    this.#onEvent('warn', line)
    return [line]
  }

  /**
   * @param {number} to connections
   * @param {number} seconds
   * @returns {Promise<{done: Promise<void>, warnings: string[]}>} under way; `done` when the last number has been told
   * @throws {Error} one line
   */
  ramp(to, seconds) {
    return this.#roster.inTurn(async () => {
      const { settings } = this.#roster.state
      const fault = contradiction({ ...settings, n: to })
      if (fault !== '') throw new Error(fault)
      this.endRamp('another one was begun')
      const began = Date.now()
      const ramp = this.#runRamp({ from: settings.n, to, began, ends: began + seconds * 1000 })
      return { done: ramp.done, warnings: this.shortfall(to) }
    })
  }

  /** @param {import('./ramp.js').RampState} line */
  #runRamp(line) {
    const { state } = this.#roster
    const ramp = new Ramp(line, n =>
      this.#roster.inTurn(async () => {
        if (this.#ramp === ramp) await this.#change({ ...state.settings, n })
      }),
    )
    this.#ramp = ramp
    state.ramp = line
    const over = () => {
      if (this.#ramp !== ramp) return
      this.#ramp = null
      state.ramp = null
      void this.#roster.save()
    }
    ramp.done.then(over, error => {
      if (this.#ramp === ramp) this.#onEvent('error', `the ramp ends: ${error.message}`)
      over()
    })
    void ramp.run()
    return ramp
  }

  /** @param {string} why */
  endRamp(why) {
    const ramp = this.#ramp
    this.#ramp = null
    this.#roster.state.ramp = null
    ramp?.end(new Error(`the ramp was ended: ${why}`))
  }

  /** The controller goes; another one takes up the ramp. */
  async close() {
    const { ramp } = this.#roster.state
    this.endRamp('the controller has gone')
    this.#roster.state.ramp = ramp
    await this.#roster.inTurn(async () => {})
  }
}
