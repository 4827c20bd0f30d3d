// What a run says while it goes on: pure text of snapshots.

import { count, milliseconds } from '../../src/charts/format.js'
import { Distribution } from '../statistics/distribution.js'

/** @typedef {import('../schema.js').FleetSnapshot} FleetSnapshot */

/** @param {number} value */
const whole = value => count(Math.round(value))

/**
 * @param {string} what `opening`, `measuring 12/60 s`
 * @param {FleetSnapshot} snapshot
 * @returns {string} one line
 */
export function progressText(what, { gauges, counters, rates, latencyNow, settings }) {
  const parts = [what, `${whole(gauges.open)} of ${whole(gauges.wanted)} connections`]
  if (gauges.opening > 0) parts.push(`${whole(rates.opened)}/s opened`)
  if (rates.received > 0 || settings.publish_rate > 0) {
    parts.push(`${whole(rates.received)}/s received`)
    if (latencyNow.count > 0) parts.push(`p99 ${milliseconds(Distribution.from(latencyNow).percentile(99))}`)
    parts.push(`${whole(counters.lost)} lost`)
  }
  if (counters.failed > 0) parts.push(`${whole(counters.failed)} failed`)
  if (counters.ended > 0) parts.push(`${whole(counters.ended)} ended`)
  return parts.join(' · ')
}
