import { gcPause, perSecond } from './format.js'

/** Seconds that the charts go back. */
export const SPAN = 300

/**
 * What is kept of a worker, in this order.
 *
 * @typedef {object} WorkerPoint
 * @property {number} max of its event-loop delay, ms
 * @property {number} p90
 * @property {number} used bytes of its heap
 * @property {number} total
 * @property {number} clients
 * @property {number} in messages a second
 * @property {number} out
 */
const FIELDS = /** @type {const} */ (['max', 'p90', 'used', 'total', 'clients', 'in', 'out'])

/**
 * What the charts keep of a second.
 *
 * @typedef {object} Point
 * @property {number} time unix ms
 * @property {number} connections
 * @property {number} in messages a second
 * @property {number} out
 * @property {number} p90 of the event-loop delay of all workers, ms
 * @property {number} max
 * @property {number} heap bytes: of V8, committed, all processes
 * @property {number} native the rest of what the processes hold
 * @property {number | null} kernel what it holds for connections of the gateway; null where it is not known
 * @property {number | null} each bytes a connection, without the kernel's; null below 1,000 connections
 * @property {number | null} eachKernel
 * @property {number} cpu of all processes, shares of one core
 * @property {number} gc ms of pauses in a second, all workers
 * @property {Float32Array} workers FIELDS of each, by index, NaN for one that was not there: 2.2 MB for 256 workers and all of SPAN. A worker
 *   that was replaced is another process in the same place
 *
 * @typedef {Point | null} Moment null: a second of which nothing is known
 */

/**
 * @param {import('../src/stats/schema.js').Snapshot} snapshot also a thinned one
 * @returns {Point}
 */
export function toPoint({ time, interval, totals, capacity, workers }) {
  const { memory, counts } = totals
  return {
    time,
    connections: totals.connections.connected,
    in: perSecond(counts.in.messages, interval),
    out: perSecond(counts.out.messages, interval),
    p90: totals.loop.ticks.p90,
    max: totals.loop.ticks.max,
    heap: memory.heap_total,
    native: memory.native,
    kernel: memory.kernel,
    each: capacity.bytes_per_connection,
    eachKernel: capacity.kernel_per_connection,
    cpu: totals.cpu.user + totals.cpu.system,
    gc: gcPause(totals.gc),
    workers: ofWorkers(workers),
  }
}

/**
 * @param {import('../src/stats/schema.js').WorkerView[]} workers
 * @returns {Float32Array}
 */
function ofWorkers(workers) {
  const figures = new Float32Array(workers.length * FIELDS.length).fill(Number.NaN)
  workers.forEach(({ state, sample }, index) => {
    if (sample === null || state !== 'up') return
    const { loop, memory, connections, counts, interval } = sample
    const { max, p90 } = loop.ticks
    const messages = [counts.in, counts.out].map(flow => perSecond(flow.messages, interval))
    figures.set(
      [max, p90, memory.heap_used, memory.heap_total, connections.connected, ...messages],
      index * FIELDS.length,
    )
  })
  return figures
}

/**
 * @param {Moment} moment
 * @param {number} index of the worker
 * @returns {WorkerPoint | null} null: it was not there, or nothing is known of it
 */
export function workerAt(moment, index) {
  const at = index * FIELDS.length
  if (moment === null || !(moment.workers[at] >= 0)) return null
  const [max, p90, used, total, clients, into, out] = moment.workers.subarray(at, at + FIELDS.length)
  return { max, p90, used, total, clients, in: into, out }
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
