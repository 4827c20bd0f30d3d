// Counters and measurements of an engine, and its clock.

import { addFault, zeroCounters } from '../../statistics/counters.js'
import { Distribution } from '../../statistics/distribution.js'

/** @import { EngineSample } from '../../schema.js' */

const MAX_KINDS = 29

export class Figures {
  counters = zeroCounters()
  /** Of other machines' messages; own messages are in `probe`. sample() merges both: each is recorded once. */
  latency = new Distribution()
  probe = new Distribution()
  connect = new Distribution()
  answer = new Distribution()
  /** By kind. @type {Record<string, number>} */
  #faults = Object.create(null)

  /** @param {string} kind @param {number} [times] */
  fault(kind, times = 1) {
    addFault(this.#faults, kind, times, MAX_KINDS)
  }

  /** @returns {Omit<EngineSample, 'gauges' | 'clock'>} distributions and faults since the last call */
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

/** Unix ms. Read once: the getter is slow. */
const ORIGIN = performance.timeOrigin
/** Maximum drift of two clocks: ms per ms. */
const DRIFT = 20e-6

/**
 * The machine's clock and its offset to the gateway's. A connect reply has the gateway's time T in whole ms: the offset
 * is between T - received and T + 1 - sent. The clock keeps the intersection, widened by the possible drift since then.
 */
export class Clock {
  /** Bounds of the offset, ms, at the time `#at`. */
  #low = -Infinity
  #high = Infinity
  #at = 0

  /** @returns {number} Unix ms with fractions. Monotonic; processes of a machine differ by about 0.1 ms */
  now() {
    return ORIGIN + performance.now()
  }

  /** @param {number} time of the gateway, Unix ms @param {number} sent or earlier @param {number} received or later */
  learn(time, sent, received) {
    const low = time - received
    const high = time + 1 - sent
    const wider = (received - this.#at) * DRIFT
    this.#low = Math.max(this.#low - wider, low)
    this.#high = Math.min(this.#high + wider, high)
    this.#at = received
    if (this.#low <= this.#high) return
    // No offset fits all replies: a clock was set. Use the newest reply.
    this.#low = low
    this.#high = high
  }

  /** @returns {import('../../schema.js').Clock} */
  get state() {
    if (this.#at === 0) return { offset: 0, error: 0, against: 'none' }
    const error = (this.#high - this.#low) / 2
    return { offset: this.#low + error, error: error + (this.now() - this.#at) * DRIFT, against: 'gateway' }
  }
}

/** @param {{code: number, message?: string, reason?: string}} fault @returns {string} `3012 no pong` */
export const faultText = ({ code, message, reason }) => `${code || ''} ${message ?? reason ?? ''}`.trim()
