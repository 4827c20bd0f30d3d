// The snapshots of the gateway as the screen needs them: points for the charts, sorted workers.

import { gcPause, perSecond, totalCpu } from './health.js'
import { STALE_AFTER, shown, sortRows, withPoint } from './view/state.js'

/** @import { Snapshot, WorkerSample, WorkerView } from '../src/metrics/schema.js' */
/** @import { State } from './state.js' */

/** @param {State} state */
export const isStale = state =>
  state.link.state !== 'open' || (state.live.snapshot !== null && state.now - state.receivedAt > STALE_AFTER)

/** Seconds shown by the charts. */
export const SPAN = 300

/**
 * Figures of a worker in a point, in this order.
 * @typedef {object} WorkerPoint
 * @property {number} max event-loop delay, ms
 * @property {number} p90
 * @property {number} used heap bytes
 * @property {number} total
 * @property {number} clients
 * @property {number} in messages a second
 * @property {number} out
 */
const FIELDS = /** @type {const} */ (['max', 'p90', 'used', 'total', 'clients', 'in', 'out'])

/**
 * What the charts keep of one second.
 * @typedef {object} Point
 * @property {number} time unix ms
 * @property {number} connections
 * @property {number} in messages a second
 * @property {number} out
 * @property {number} p90 event-loop delay of all workers, ms
 * @property {number} max
 * @property {number} heap bytes of V8, committed, all processes
 * @property {number} native other memory of the processes
 * @property {number | null} kernel memory of the gateway's connections; null: unknown
 * @property {number | null} bytesPerConnection without the kernel's; null below 1,000 connections
 * @property {number | null} kernelPerConnection
 * @property {number} cpu all processes, shares of one core
 * @property {number} gc ms of pauses per second, all workers
 * @property {Float32Array} workers FIELDS of each, by index, NaN if absent: 2.2 MB for 256 workers over SPAN. A
 *   replaced worker is another process at the same index
 *
 * @typedef {Point | null} Moment null: an unknown second
 */

/** @param {Snapshot} snapshot may be thinned @returns {Point} */
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
    bytesPerConnection: capacity.bytes_per_connection,
    kernelPerConnection: capacity.kernel_per_connection,
    cpu: totals.cpu.user + totals.cpu.system,
    gc: gcPause(totals.gc),
    workers: ofWorkers(workers),
  }
}

/** @param {WorkerView[]} workers @returns {Float32Array} */
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

/** @param {Moment} moment @param {number} index @returns {WorkerPoint | null} null: absent or unknown */
export function workerAt(moment, index) {
  const at = index * FIELDS.length
  if (moment === null || !(moment.workers[at] >= 0)) return null
  const [max, p90, used, total, clients, into, out] = moment.workers.subarray(at, at + FIELDS.length)
  return { max, p90, used, total, clients, in: into, out }
}

/**
 * A gateway sends its history on connect. Older moments, of the gateway before it, are kept.
 * @param {Moment[]} moments @param {Snapshot[]} history @returns {Moment[]}
 */
export function withHistory(moments, history) {
  if (history.length === 0) return moments
  const from = history[0].time
  let all = moments.filter(moment => moment === null || moment.time < from - 500)
  while (all.length > 0 && all.at(-1) === null) all = all.slice(0, -1)
  for (const snapshot of history) all = withPoint(all, toPoint(snapshot), SPAN)
  return all
}

/**
 * Sort columns, in the order of the key `s`.
 * @type {readonly {name: string, down: boolean, value: (sample: WorkerSample) => number}[]}
 */
export const SORTS = [
  { name: 'worker', down: false, value: ({ index }) => index },
  { name: 'clients', down: true, value: ({ connections }) => connections.connected },
  { name: 'cpu', down: true, value: ({ cpu }) => totalCpu(cpu) },
  { name: 'rss', down: true, value: ({ memory }) => memory.rss },
  { name: 'heap', down: true, value: ({ memory }) => memory.heap_used },
  { name: 'max', down: true, value: ({ loop }) => loop.ticks.max },
  { name: 'loop', down: true, value: ({ loop }) => loop.utilization },
  { name: 'in', down: true, value: ({ counts }) => counts.in.messages },
  { name: 'out', down: true, value: ({ counts }) => counts.out.messages },
  { name: 'gc', down: true, value: ({ gc }) => gcPause(gc) },
  { name: 'outbox', down: true, value: ({ outbox }) => outbox.bytes },
]

const OF_VIEWS = SORTS.map(({ name, value }) => ({
  name,
  value: (/** @type {WorkerView} */ { sample }) => value(/** @type {WorkerSample} */ (sample)),
}))

/** @param {State} state @returns {WorkerView[]} in the order of the table */
export const orderedWorkers = state =>
  sortRows(
    shown(state).snapshot?.workers ?? [],
    OF_VIEWS,
    state.sort,
    (a, b) => a.index - b.index,
    ({ sample }) => sample === null,
  )
