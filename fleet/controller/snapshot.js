// Merges the samples of all drones into one snapshot of the fleet.

import { addCounters, addFault, zeroCounters } from '../statistics/counters.js'
import { Distribution } from '../statistics/distribution.js'

/** @typedef {import('../schema.js').Counters} Counters */
/** @typedef {import('../schema.js').FleetSnapshot} FleetSnapshot */
/** @typedef {import('../schema.js').Rates} Rates */
/** @typedef {import('../statistics/distribution.js').Distributions} Distributions */

/** @type {readonly (keyof Rates)[]} */
export const RATES = ['opened', 'failed', 'ended', 'received', 'published', 'bytesIn', 'bytesOut']

/** @returns {Rates} */
export const zeroRates = () => /** @type {any} */ (Object.fromEntries(RATES.map(name => [name, 0])))

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
  for (const [kind, count] of Object.entries(from.faults))
    addFault(to.faults, kind, count, MOST_FAULTS, OTHER_FAULTS)
  return to
}

/**
 * The final counts of a drone's ended start: its open connections ended uncounted.
 * @param {Tally} tally @param {'ended' | 'closed'} as the drone died, or was stopped @returns {Tally}
 */
export function finalTally({ counters, faults }, as) {
  const open = Math.max(0, counters.opened - counters.ended - counters.closed)
  return { counters: { ...counters, [as]: counters[as] + open }, faults }
}

/**
 * @param {object} fleet @param {number} fleet.time @param {import('./folder.js').FleetState} fleet.state
 * @param {Iterable<import('./drone.js').Drone>} fleet.drones @param {Distributions} fleet.distributions
 * @param {FleetSnapshot['events']} fleet.events @param {FleetSnapshot['scenario']} [fleet.scenario]
 * @returns {FleetSnapshot}
 */
export function snapshotOf({ time, state, drones, distributions, events, scenario }) {
  const total = addTally(zeroTally(), state.past)
  const gauges = { wanted: 0, opening: 0, open: 0 }
  const rates = zeroRates()
  const latencyNow = new Distribution()
  const rows = []
  for (const drone of drones) {
    const latency = drone.latencyNow(time)
    if (latency.count > 0) latencyNow.merge(latency.toWire())
    const row = drone.row(time, latency)
    rows.push(row)
    addTally(total, drone.state.tally)
    for (const name of RATES) rates[name] += row.rates[name]
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
    ...distributions.toWire(),
    latencyNow: latencyNow.toWire(),
    events,
    began: state.began,
    scenario: scenario ?? null,
  }
}
