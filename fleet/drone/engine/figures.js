import { zeroCounters } from '../../statistics/counters.js'
import { Distribution } from '../../statistics/distribution.js'

/** @typedef {import('../../schema.js').EngineSample} EngineSample */

/** Faults that are counted by what they are; the others are together. */
const KINDS = 30

/** What an engine counts and measures. */
export class Figures {
  counters = zeroCounters()
  /** Of messages of other machines; those of this one are in `probe`, and put together in the sample: each is recorded once. */
  latency = new Distribution()
  probe = new Distribution()
  connect = new Distribution()
  answer = new Distribution()
  /** @type {Record<string, number>} by kind: some are words of a server, so no name is there before */
  #faults = Object.create(null)

  /** @param {string} kind @param {number} [times] */
  fault(kind, times = 1) {
    const faults = this.#faults
    const name = kind in faults || Object.keys(faults).length < KINDS - 1 ? kind : 'other'
    faults[name] = (faults[name] ?? 0) + times
  }

  /** @returns {Omit<EngineSample, 'gauges' | 'clock'>} distributions and faults are those since the last call */
  sample() {
    const { counters, latency, probe, connect, answer } = this
    const faults = this.#faults
    this.#faults = Object.create(null)
    latency.merge(probe.toWire())
    return {
      counters: { ...counters },
      latency: latency.take(),
      probe: probe.take(),
      connect: connect.take(),
      answer: answer.take(),
      faults,
    }
  }
}
