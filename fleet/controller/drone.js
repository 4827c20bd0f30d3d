// One drone, as the controller knows it.

import { Distribution } from '../statistics/distribution.js'
import { checkResult } from './messages.js'
import { RATES, zeroRates, zeroTally } from './snapshot.js'

/** @typedef {import('../schema.js').DroneRow} DroneRow */
/** @typedef {import('../schema.js').DroneSample} DroneSample */
/** @typedef {import('../schema.js').DistributionWire} DistributionWire */
/** @typedef {import('./folder.js').DroneState} DroneState */

/** ms: the window of "now". */
const NOW = 5000
/** ms without a sample after which a drone is silent. */
const SILENT = 5000
/** Minimum connections for a figure of memory per connection. */
const FEWEST = 200

export class Drone {
  /** @type {DroneState} */
  state
  /** @type {import('../schema.js').DroneFacts | null} */
  facts = null
  /** @type {import('../link/link.js').Link | null} */
  link = null
  /** Its process or machine is restarting. */
  restarting = false
  /** Why it is gone; '': it is not. */
  gone = ''
  /** It is being stopped: losing its link is no event. */
  leaving = false
  /** @type {DroneSample | null} without distributions */
  #sample = null
  /** Time of the last sample. */
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

  /** @returns {DroneSample | null} */
  get sample() {
    return this.#sample
  }

  /**
   * @param {import('../link/link.js').Link} link @param {import('../schema.js').Hello} hello
   * @returns {import('./snapshot.js').Tally | null} counts before its restart
   */
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
    this.#sample = null
    return tally
  }

  detach() {
    this.link = null
  }

  /**
   * @param {{type: string, [field: string]: any}} message without `ask`
   * @param {{timeout?: number}} [options] ms
   * @returns {Promise<any>} its reply, checked
   * @throws {Error} one line: it refuses, does not answer, or is not connected
   */
  async request(message, options) {
    if (this.link === null) throw new Error(`${this.id} is not connected`)
    return checkResult(message.type, await this.link.request(message, options))
  }

  /** @param {DroneSample} whole @param {number} now */
  receive(whole, now) {
    const { latency, probe, connect, answer, ...sample } = whole
    const before = this.#sample
    const counted = before?.counters ?? this.state.tally.counters
    // An adopted drone has counted since its own start, not since its last sample.
    const span = before === null ? Math.min(sample.up, 1000) : sample.at - before.at
    if (before !== null || sample.up < 2000) {
      for (const name of RATES)
        this.#rates[name] =
          span > 0 ? Math.max(0, ((sample.counters[name] - counted[name]) * 1000) / span) : 0
    }
    if (before !== null && span > 0) {
      const times = new Map(before.processes.map(({ pid, cpu }) => [pid, cpu]))
      const spent = sample.processes.reduce((sum, { pid, cpu }) => sum + cpu - (times.get(pid) ?? 0), 0)
      this.#cpu = Math.max(0, spent / span)
    }
    this.#sample = /** @type {DroneSample} */ (sample)
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
    // It has just connected; its first sample follows at once.
    if (this.up && this.#sample === null) return 'up'
    return this.silent(now) ? 'silent' : 'up'
  }

  #bytesPerConnection() {
    let bytes = 0
    let connections = 0
    for (const { role, private: own, base, connections: held } of this.#sample?.processes ?? []) {
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
      sample: this.#sample,
      rates: fresh ? { ...this.#rates } : zeroRates(),
      p99: latency.count === 0 ? 0 : latency.percentile(99),
      cpu: fresh ? this.#cpu : 0,
      bytesPerConnection: this.#bytesPerConnection(),
      restarts,
    }
  }
}
