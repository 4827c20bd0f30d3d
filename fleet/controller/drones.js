// The controller's list of the fleet's drones, in memory and on disk.

import { RATES, rate, zeroRates } from '../statistics/counters.js'
import { Distribution } from '../statistics/distribution.js'
import { Store } from './folder.js'
import { checkResult } from './messages.js'
import { addTally, finalTally, zeroTally } from './snapshot.js'

/** @import { Link } from '../link/link.js' */
/** @import { DistributionWire, DroneFacts, DroneRow, DroneSample, Hello } from '../schema.js' */
/** @import { DroneState, FleetState } from './folder.js' */
/** @import { Tally } from './snapshot.js' */

/** @typedef {(level: 'info' | 'warn' | 'error', text: string) => void} OnEvent */

/** ms: the window of "now". */
const NOW = 5000
/** ms without a sample until a drone is silent. */
const SILENT = 5000
const FEWEST = 200

export class Drone {
  /** @type {DroneState} */
  state
  /** @type {DroneFacts | null} */
  facts = null
  /** @type {Link | null} */
  link = null
  restarting = false
  /** Why it is gone; '': not gone. */
  gone = ''
  /** It is being stopped: a lost link is no event. */
  leaving = false
  /** Without distributions. @type {DroneSample | null} */
  sample = null
  #seen = 0
  /** Of the last 5 s. @type {{time: number, latency: DistributionWire}[]} */
  #window = []
  #rates = zeroRates()
  #cpu = 0

  /** @param {DroneState} state */
  constructor(state) {
    this.state = state
  }

  get id() {
    return this.state.id
  }

  get up() {
    return this.link !== null
  }

  /** @param {Link} link @param {Hello} hello @returns {Tally | null} counts before its restart */
  attach(link, hello) {
    this.link = link
    this.facts = hello.facts
    this.restarting = false
    this.gone = ''
    this.state.capacity = hello.facts.capacity
    if (hello.start === this.state.start) return null
    const tally = this.state.tally
    if (this.state.start !== '') this.state.restarts++
    this.state.start = hello.start
    this.state.tally = zeroTally()
    this.sample = null
    return tally
  }

  detach() {
    this.link = null
  }

  /**
   * @param {{type: string, [field: string]: any}} message without `ask` @param {{timeout?: number}} [options] ms
   * @returns {Promise<any>} its checked reply
   * @throws {Error} one line: refused, timed out, or not connected
   */
  async request(message, options) {
    if (this.link === null) throw new Error(`${this.id} is not connected`)
    return checkResult(message.type, await this.link.request(message, options))
  }

  /** @param {DroneSample} whole @param {number} now */
  receive(whole, now) {
    const { latency, probe, connect, answer, ...sample } = whole
    const before = this.sample
    const counted = before?.counters ?? this.state.tally.counters
    // An adopted drone counts since its start, not since its last sample.
    const span = before === null ? Math.min(sample.up, 1000) : sample.at - before.at
    if (before !== null || sample.up < 2000) {
      for (const name of RATES) this.#rates[name] = rate(sample.counters[name], counted[name], span)
    }
    if (before !== null && span > 0) {
      const times = new Map(before.processes.map(({ pid, cpu }) => [pid, cpu]))
      const spent = sample.processes.reduce((sum, { pid, cpu }) => sum + cpu - (times.get(pid) ?? 0), 0)
      this.#cpu = Math.max(0, spent / span)
    }
    this.sample = /** @type {DroneSample} */ (sample)
    this.#seen = now
    this.state.tally = { counters: sample.counters, faults: sample.faults }
    this.#window.push({ time: now, latency })
    this.#trim(now)
  }

  /** @param {number} now */
  #trim(now) {
    while (this.#window.length > 0 && this.#window[0].time <= now - NOW) this.#window.shift()
  }

  /** @param {number} now @returns {Distribution} latency of the last 5 s */
  latencyNow(now) {
    this.#trim(now)
    const all = new Distribution()
    for (const { latency } of this.#window) all.merge(latency)
    return all
  }

  /** @param {number} now @returns {boolean} */
  silent(now) {
    return !this.up || now - this.#seen > SILENT
  }

  /** @returns {DroneRow['state']} @param {number} now */
  #stateAt(now) {
    if (this.restarting) return 'restarting'
    if (this.gone !== '') return 'gone'
    if (this.state.start === '') return 'launching'
    // Just connected: its first sample follows.
    if (this.up && this.sample === null) return 'up'
    return this.silent(now) ? 'silent' : 'up'
  }

  #bytesPerConnection() {
    let bytes = 0
    let connections = 0
    for (const { role, private: own, base, connections: held } of this.sample?.processes ?? []) {
      if (role !== 'connections') continue
      bytes += Math.max(0, own - base)
      connections += held
    }
    return connections < FEWEST ? 0 : bytes / connections
  }

  /** @param {number} now @param {Distribution} latency of its last 5 s @returns {DroneRow} */
  row(now, latency) {
    const { handle, restarts } = this.state
    const state = this.#stateAt(now)
    const fresh = state === 'up' && !this.silent(now)
    return {
      id: this.id,
      where: handle?.where ?? '',
      handle: handle?.handle ?? '',
      state,
      facts: this.facts,
      sample: this.sample,
      rates: fresh ? { ...this.#rates } : zeroRates(),
      p99: latency.count === 0 ? 0 : latency.percentile(99),
      cpu: fresh ? this.#cpu : 0,
      bytesPerConnection: this.#bytesPerConnection(),
      restarts,
    }
  }
}

export class DroneList {
  /** Persistent state; `drones` is updated on save. @type {FleetState} */
  state
  dir
  #store
  /** In the order of their shares. @type {Map<string, Drone>} */
  #drones = new Map()
  #empty
  /** Serializes changes. @type {Promise<any>} */
  #turn = Promise.resolve()

  /** @param {string} dir @param {FleetState} state @param {OnEvent} onEvent */
  constructor(dir, state, onEvent) {
    this.dir = dir
    this.state = state
    this.#empty = state.drones.length === 0
    this.#store = new Store(dir, text => onEvent('error', text))
    for (const known of state.drones) this.#drones.set(known.id, new Drone(known))
  }

  /** @returns {Drone[]} */
  get all() {
    return [...this.#drones.values()]
  }

  /** Drones with a share: their launch is complete. */
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
    return { dir: this.dir, flags: this.state.flags }
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
