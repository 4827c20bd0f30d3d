import { addCounters, zeroCounters } from '../statistics/counters.js'
import { Recorder } from '../statistics/recorder.js'

/** @typedef {import('../schema.js').EngineSample} EngineSample */

const DISTRIBUTIONS = /** @type {const} */ (['latency', 'probe', 'connect', 'answer'])
/** Kinds of faults that are told apart. */
const MAX_FAULTS = 29

/** What all processes of the drone have counted, also those that are no more: nothing that was counted is lost with them. */
export class Totals {
  /** Processes that died. */
  deaths = 0
  #past = zeroCounters()
  /** @type {Record<string, number>} */
  #faults = Object.create(null)
  #distributions = DISTRIBUTIONS.map(() => new Recorder())

  /** @param {EngineSample} sample whose distributions and faults are taken up */
  merge(sample) {
    const faults = this.#faults
    for (const [kind, times] of Object.entries(sample.faults)) {
      const known = kind in faults || Object.keys(faults).length < MAX_FAULTS ? kind : 'other'
      faults[known] = (faults[known] ?? 0) + times
    }
    DISTRIBUTIONS.forEach((name, i) => {
      this.#distributions[i].merge(sample[name])
    })
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
   * @returns {EngineSample} of the drone; distributions begin anew
   */
  take(samples, wanted) {
    const counters = addCounters(zeroCounters(), this.#past)
    const gauges = { wanted, opening: 0, open: 0 }
    /** @type {import('../schema.js').Clock} */
    let clock = { offset: 0, error: 0, against: 'none' }
    for (const sample of samples) {
      addCounters(counters, sample.counters)
      gauges.opening += sample.gauges.opening
      gauges.open += sample.gauges.open
      if (
        sample.clock.against === 'gateway' &&
        !(clock.against === 'gateway' && clock.error <= sample.clock.error)
      )
        clock = sample.clock
    }
    const [latency, probe, connect, answer] = this.#distributions.map(distribution => {
      const wire = distribution.toWire()
      distribution.reset()
      return wire
    })
    return { gauges, counters, latency, probe, connect, answer, faults: this.#faults, clock }
  }
}
