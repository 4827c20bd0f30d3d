// What the controller has sent, as the screen needs it: points for the charts, drones in their order.

import { STALE_AFTER, shown, sortRows } from '../../dashboard/view/state.js'
import { Distribution } from '../statistics/distribution.js'

/**
 * @typedef {import('../schema.js').DroneRow} DroneRow
 * @typedef {import('../schema.js').Counters} Counters
 */

/** @param {import('./state.js').State} state */
export const isStale = state => state.lost !== null || state.now - state.receivedAt > STALE_AFTER

/** Most seconds that are kept. */
export const KEPT = 600

/**
 * What the charts keep of a second.
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
 * @typedef {Point | null} Moment null: a second of which nothing is known
 */

/** @param {import('../schema.js').FleetSnapshot} snapshot @returns {Point} */
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

/** Seconds from the left edge of a chart to the right one. */
const SPANS = [60, 120, 300, KEPT]

/** @param {Moment[]} moments @returns {number} seconds: charts of a young run fill their width */
export const spanOf = moments => SPANS.find(span => moments.length <= span) ?? KEPT

/**
 * @param {Moment[]} moments @param {number} seconds
 * @returns {number} connections opened in a second, the mean of the last seconds; 0: none, or unknown
 */
export function openedRate(moments, seconds) {
  const last = moments.slice(-seconds).filter(moment => moment !== null)
  return last.reduce((sum, { opened }) => sum + opened, 0) / Math.max(1, last.length)
}

/** @param {keyof Counters} name @returns {(row: DroneRow) => number} */
const counted = name => row => row.sample?.counters[name] ?? 0

/** Drones with problems come first. @type {DroneRow['state'][]} */
const STATES = ['gone', 'silent', 'restarting', 'launching', 'up']

/**
 * Columns by which drones are sorted, in the order of the key `s`.
 * @type {readonly {name: string, down: boolean, value: (row: DroneRow) => number}[]}
 */
export const SORTS = [
  { name: 'id', down: false, value: () => 0 },
  { name: 'state', down: false, value: ({ state }) => STATES.indexOf(state) },
  { name: 'open', down: true, value: row => row.sample?.gauges.open ?? 0 },
  { name: 'failed', down: true, value: counted('failed') },
  { name: 'ended', down: true, value: counted('ended') },
  { name: 'lost', down: true, value: counted('lost') },
  { name: 'in', down: true, value: ({ rates }) => rates.received },
  { name: 'out', down: true, value: ({ rates }) => rates.published },
  { name: 'p99', down: true, value: ({ p99 }) => p99 },
  { name: 'cpu', down: true, value: ({ cpu }) => cpu },
  { name: 'each', down: true, value: ({ bytesPerConnection }) => bytesPerConnection },
  { name: 'clock', down: true, value: row => row.sample?.clock.error ?? -1 },
  { name: 'restarts', down: true, value: ({ restarts }) => restarts },
]

/** d2 before d10; created once, because that is slow. */
const { compare } = new Intl.Collator('en', { numeric: true })

/** @param {import('./state.js').State} state @returns {DroneRow[]} in the order of the table */
export const orderedDrones = state =>
  sortRows(
    shown(state).snapshot?.drones ?? [],
    SORTS,
    state.sort,
    (a, b) => compare(a.id, b.id),
    ({ sample }, column) => column !== 'state' && sample === null,
  )
