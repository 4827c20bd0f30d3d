import { addCounters, zeroCounters } from '../statistics/counters.js'
import { Distribution } from '../statistics/distribution.js'

// Merges the samples of all drones into one snapshot of the fleet.

/** @typedef {import('../schema.js').Counters} Counters */
/** @typedef {import('../schema.js').FleetSnapshot} FleetSnapshot */
/** @typedef {import('../schema.js').DroneSample} DroneSample */

/**
 * @typedef {object} Tally
 * @property {Counters} counters
 * @property {Record<string, number>} faults
 */

/** Kinds of faults of all drones that are counted by name. */
const MOST_FAULTS = 60
const OTHER_FAULTS = 'others'

/** @returns {Tally} */
export const zeroTally = () => ({ counters: zeroCounters(), faults: Object.create(null) })

/** @param {Tally} to @param {Tally} from @returns {Tally} `to` */
export function addTally(to, from) {
  addCounters(to.counters, from.counters)
  for (const [kind, count] of Object.entries(from.faults)) {
    const known = Object.hasOwn(to.faults, kind) || Object.keys(to.faults).length < MOST_FAULTS
    const name = known ? kind : OTHER_FAULTS
    to.faults[name] = (to.faults[name] ?? 0) + count
  }
  return to
}

/**
 * Closes the books of a drone's ended start: its open connections ended uncounted.
 * @param {Tally} tally @param {'ended' | 'closed'} as the drone died, or was stopped @returns {Tally}
 */
export function settled({ counters, faults }, as) {
  const open = Math.max(0, counters.opened - counters.ended - counters.closed)
  return { counters: { ...counters, [as]: counters[as] + open }, faults }
}

/** The distributions of a sample. */
const DISTRIBUTIONS = /** @type {const} */ (['latency', 'probe', 'connect', 'answer'])

/** The distributions of all messages since the last reset. */
export class Statistics {
  #of = Object.fromEntries(DISTRIBUTIONS.map(name => [name, new Distribution()]))

  /** @param {DroneSample} sample */
  add(sample) {
    for (const name of DISTRIBUTIONS) this.#of[name].merge(sample[name])
  }

  reset() {
    for (const name of DISTRIBUTIONS) this.#of[name].reset()
  }

  /** @returns {Record<'latency' | 'probe' | 'connect' | 'answer', import('../schema.js').DistributionWire>} */
  toWire() {
    const wires = DISTRIBUTIONS.map(name => [name, this.#of[name].toWire()])
    return /** @type {any} */ (Object.fromEntries(wires))
  }
}

/**
 * @param {object} fleet @param {number} fleet.time @param {import('./folder.js').FleetState} fleet.state
 * @param {Iterable<import('./drone.js').Drone>} fleet.drones @param {Statistics} fleet.statistics
 * @param {FleetSnapshot['events']} fleet.events @param {FleetSnapshot['scenario']} [fleet.scenario]
 * @returns {FleetSnapshot}
 */
export function snapshotOf({ time, state, drones, statistics, events, scenario }) {
  const total = addTally(zeroTally(), state.past)
  const gauges = { wanted: 0, opening: 0, open: 0 }
  const rates = { opened: 0, failed: 0, ended: 0, received: 0, published: 0, bytesIn: 0, bytesOut: 0 }
  const latencyNow = new Distribution()
  const rows = []
  for (const drone of drones) {
    const latency = drone.latencyNow(time)
    if (latency.count > 0) latencyNow.merge(latency.toWire())
    const row = drone.row(time, latency)
    rows.push(row)
    addTally(total, drone.state.tally)
    for (const name of /** @type {(keyof typeof rates)[]} */ (Object.keys(rates)))
      rates[name] += row.rates[name]
    if (row.sample === null || drone.silent(time)) continue
    gauges.wanted += row.sample.gauges.wanted
    gauges.opening += row.sample.gauges.opening
    gauges.open += row.sample.gauges.open
  }
  return {
    time,
    run: state.run,
    provider: state.provider,
    settings: state.settings,
    ramp: state.ramp,
    drones: rows,
    gauges,
    counters: total.counters,
    rates,
    faults: total.faults,
    ...statistics.toWire(),
    latencyNow: latencyNow.toWire(),
    events,
    began: state.began,
    scenario: scenario ?? null,
  }
}
