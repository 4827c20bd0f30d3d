import { addCounters, zeroCounters } from '../statistics/counters.js'
import { Distribution } from '../statistics/distribution.js'

/** @typedef {import('../schema.js').EngineSample} EngineSample */

/** Kinds of faults that are told apart. */
const MAX_FAULTS = 29

/** What all processes of the drone have counted, also those that are no more: nothing that was counted is lost with them. */
export class Totals {
  /** Processes that died. */
  deaths = 0
  #past = zeroCounters()
  /** @type {Record<string, number>} */
  #faults = Object.create(null)
  /** @type {Record<string, Distribution>} */
  #recorders = {
    latency: new Distribution(),
    probe: new Distribution(),
    connect: new Distribution(),
    answer: new Distribution(),
  }

  /** @param {any} sample whose distributions and faults are taken up */
  merge(sample) {
    const faults = this.#faults
    for (const kind in sample.faults) {
      const known = kind in faults || Object.keys(faults).length < MAX_FAULTS ? kind : 'other'
      faults[known] = (faults[known] ?? 0) + sample.faults[kind]
    }
    for (const name in this.#recorders) this.#recorders[name].merge(sample[name])
  }

  /** @param {EngineSample} sample the last one of a process that has ended */
  bury({ counters, gauges }) {
    addCounters(this.#past, counters)
    // What it had open has ended with it.
    this.#past.ended += gauges.open
  }

  /**
   * @param {EngineSample[]} samples the last ones of all processes
   * @param {number} wanted connections
   * @returns {EngineSample & {deaths: number}} of the drone; distributions begin anew
   */
  take(samples, wanted) {
    const gauges = { wanted, opening: 0, open: 0 }
    const counters = { ...this.#past }
    for (const sample of samples) {
      addCounters(counters, sample.counters)
      gauges.opening += sample.gauges.opening
      gauges.open += sample.gauges.open
    }
    const [clock = { offset: 0, error: 0, against: 'none' }] = samples
      .flatMap(({ clock }) => (clock.against === 'gateway' ? clock : []))
      .sort((a, b) => a.error - b.error)
    /** @type {any} */
    const sample = { gauges, counters, faults: this.#faults, clock, deaths: this.deaths }
    for (const name in this.#recorders) {
      sample[name] = this.#recorders[name].toWire()
      this.#recorders[name].reset()
    }
    return sample
  }
}
