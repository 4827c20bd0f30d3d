import { gcPause, perSecond } from './format.js'

/** Seconds that the charts go back. */
export const SPAN = 300

/**
 * What the charts keep of a second.
 *
 * @typedef {object} Point
 * @property {number} time unix ms
 * @property {number} connections
 * @property {number} in messages a second
 * @property {number} out
 * @property {number} p90 of the ticks of all workers, ms
 * @property {number} max
 * @property {number} heap bytes: of V8, committed, all processes
 * @property {number} native the rest of what the processes hold
 * @property {number | null} kernel slab and TCP memory of the machine; null where it is not known
 * @property {number | null} each bytes a connection, without the kernel's; null below 1,000 connections
 * @property {number | null} eachKernel
 * @property {number} cpu of all processes, shares of one core
 * @property {number} gc ms of pauses in a second, all workers
 * @property {number[]} ticks max of each worker, by index; NaN for one that was not there
 *
 * @typedef {Point | null} Moment null: a second of which nothing is known
 */

/**
 * @param {import('../src/stats/schema.js').Snapshot} snapshot also a thinned one
 * @returns {Point}
 */
export function toPoint({ time, interval, totals, machine, capacity, workers }) {
  const { memory, counts } = totals
  const { slab } = machine.memory
  const tcp = machine.sockets?.tcp.memory ?? null
  return {
    time,
    connections: totals.connections.connected,
    in: perSecond(counts.in.messages, interval),
    out: perSecond(counts.out.messages, interval),
    p90: totals.loop.ticks.p90,
    max: totals.loop.ticks.max,
    heap: memory.heap_total,
    native: memory.native,
    kernel: slab === null && tcp === null ? null : (slab ?? 0) + (tcp ?? 0),
    each: capacity.bytes_per_connection,
    eachKernel: capacity.kernel_per_connection,
    cpu: totals.cpu.user + totals.cpu.system,
    gc: gcPause(totals.gc),
    ticks: workers.map(({ state, sample }) =>
      sample && state === 'up' ? sample.loop.ticks.max : Number.NaN,
    ),
  }
}

/**
 * @param {Moment[]} moments oldest first
 * @param {Point} point
 * @returns {Moment[]} with it at the end; seconds that were missed in between are null, so that time runs evenly
 */
export function withPoint(moments, point) {
  const last = moments.at(-1)
  if (!last) return [point]
  const missed = Math.round((point.time - last.time) / 1000) - 1
  // A clock that was put back, or a second that came twice.
  if (missed < 0)
    return [...moments.filter(moment => moment && moment.time < point.time - 500), point].slice(-SPAN)
  const gap = new Array(Math.min(missed, SPAN)).fill(null)
  return [...moments, ...gap, point].slice(-SPAN)
}

/**
 * A gateway tells its past when we come to it; what we know of the time before that (of the gateway before it) stays.
 *
 * @param {Moment[]} moments
 * @param {import('../src/stats/schema.js').Snapshot[]} history
 * @returns {Moment[]}
 */
export function withHistory(moments, history) {
  if (history.length === 0) return moments
  const from = history[0].time
  let all = moments.filter(moment => moment === null || moment.time < from - 500)
  while (all.length > 0 && all.at(-1) === null) all = all.slice(0, -1)
  for (const snapshot of history) all = withPoint(all, toPoint(snapshot))
  return all
}
