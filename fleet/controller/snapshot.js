// Merges the samples of all drones into one snapshot of the fleet.

import { addCounters, addFault, RATES, zeroCounters, zeroRates } from '../statistics/counters.js'
import { Distribution } from '../statistics/distribution.js'

/** @import { Counters, FleetSnapshot } from '../schema.js' */
/** @import { Drone } from './drones.js' */
/** @import { FleetState } from './folder.js' */
/** @import { Distributions } from '../statistics/distribution.js' */

/** @typedef {{counters: Counters, faults: Record<string, number>}} Tally */

const MAX_FAULTS = 60
const OTHER_FAULTS = 'others'

/** @returns {Tally} */
export const zeroTally = () => ({ counters: zeroCounters(), faults: Object.create(null) })

/** @param {Tally} to @param {Tally} from @returns {Tally} `to` */
export function addTally(to, from) {
  addCounters(to.counters, from.counters)
  for (const [kind, count] of Object.entries(from.faults))
    addFault(to.faults, kind, count, MAX_FAULTS, OTHER_FAULTS)
  return to
}

/**
 * Final counts of an ended start of a drone, including its open connections.
 * @param {Tally} tally @param {'ended' | 'closed'} as the drone exited, or was stopped @returns {Tally}
 */
export function finalTally({ counters, faults }, as) {
  const open = Math.max(0, counters.opened - counters.ended - counters.closed)
  return { counters: { ...counters, [as]: counters[as] + open }, faults }
}

/**
 * @param {{time: number, state: FleetState, drones: Iterable<Drone>, distributions: Distributions} &
 *   Pick<FleetSnapshot, 'events' | 'scenario'>} fleet
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
