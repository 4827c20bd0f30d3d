import { Distribution } from '../statistics/distribution.js'

/** Seconds that are kept. */
export const KEPT = 600

/**
 * What charts keep of a second.
 *
 * @typedef {object} Point
 * @property {number} time Unix ms
 * @property {number} open
 * @property {number} wanted
 * @property {number} opened connections a second
 * @property {number} received publications a second
 * @property {number} published a second
 * @property {number | null} p50 ms, of the last 5 s; null: nothing was received
 * @property {number | null} p99
 * @property {number | null} max
 *
 * @typedef {Point | null} Moment null: a second of which nothing is known
 */

/**
 * @param {import('../schema.js').FleetSnapshot} snapshot
 * @returns {Point}
 */
export function toPoint({ time, gauges, rates, latencyNow }) {
  const latency = latencyNow.count > 0 ? Distribution.from(latencyNow) : null
  return {
    time,
    open: gauges.open,
    wanted: gauges.wanted,
    opened: rates.opened,
    received: rates.received,
    published: rates.published,
    p50: latency?.percentile(50) ?? null,
    p99: latency?.percentile(99) ?? null,
    max: latency?.max ?? null,
  }
}

/**
 * @param {Moment[]} moments oldest first
 * @param {Point} point
 * @returns {Moment[]} with it at the end, and nulls for the seconds between, so that time runs evenly
 */
export function withPoint(moments, point) {
  const last = moments.at(-1)
  if (!last) return [point]
  const missed = Math.round((point.time - last.time) / 1000) - 1
  if (missed < 0) {
    // The same second once more, or a clock that was put back: what is later than now is not true.
    const kept = moments.findLastIndex(moment => moment !== null && moment.time < point.time - 500) + 1
    return withPoint(moments.slice(0, kept), point)
  }
  const gap = new Array(Math.min(missed, KEPT)).fill(null)
  return [...moments, ...gap, point].slice(-KEPT)
}

/** Seconds from the left edge of a chart to the right one. */
const SPANS = [60, 120, 300, KEPT]

/**
 * @param {Moment[]} moments
 * @returns {number} seconds: a young run is not to be a few dots at the right edge
 */
export const spanOf = moments => SPANS.find(span => moments.length <= span) ?? KEPT

/**
 * @param {Moment[]} moments
 * @param {number} seconds
 * @returns {number} connections opened in a second, on average of the last seconds; 0: none, or nothing is known
 */
export function openedRate(moments, seconds) {
  const last = moments.slice(-seconds).filter(moment => moment !== null)
  return last.reduce((sum, { opened }) => sum + opened, 0) / Math.max(1, last.length)
}
