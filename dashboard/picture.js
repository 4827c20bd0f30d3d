import { perSecond, totalCpu } from './health.js'
import { withPoint } from './view/state.js'

/** @import { Snapshot, WorkerView } from '../src/metrics/schema.js' */

/** Seconds shown by the charts. */
export const SPAN = 300

/** Figures of a worker in a point, in this order: ms, bytes, connections, messages per second. */
const FIELDS = /** @type {const} */ (['max', 'p90', 'used', 'total', 'clients', 'in', 'out'])

/** @typedef {ReturnType<typeof toPoint>} Point figures kept for one second */
/** @typedef {Point | null} Moment null: an unknown second */
/** @typedef {NonNullable<ReturnType<typeof workerAt>>} WorkerPoint */

/** @param {Snapshot} snapshot may be thinned; ms, bytes, counts per second */
export function toPoint({ time, interval, totals, capacity, workers }) {
  const { memory, counts } = totals
  return {
    time,
    clients: totals.connections.connected,
    in: perSecond(counts.in.messages, interval),
    out: perSecond(counts.out.messages, interval),
    p90: totals.loop.ticks.p90,
    max: totals.loop.ticks.max,
    heap: memory.heap_total,
    native: memory.native,
    kernel: memory.kernel,
    bytesPerConnection: capacity.bytes_per_connection,
    kernelPerConnection: capacity.kernel_per_connection,
    cpu: totalCpu(totals.cpu),
    workers: ofWorkers(workers),
  }
}

/** 2.2 MB for 256 workers over SPAN; NaN: absent. @param {WorkerView[]} workers */
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

/** @param {Moment} moment @param {number} index of a worker; null: absent or unknown */
export function workerAt(moment, index) {
  const at = index * FIELDS.length
  if (moment === null || !(moment.workers[at] >= 0)) return null
  const [max, p90, used, total, clients, into, out] = moment.workers.subarray(at, at + FIELDS.length)
  return { max, p90, used, total, clients, in: into, out }
}

/** Keeps moments of an earlier gateway. @param {Moment[]} moments @param {Snapshot[]} history */
export function withHistory(moments, history) {
  if (history.length === 0) return moments
  const from = history[0].time
  let all = moments.filter(moment => moment === null || moment.time < from - 500)
  while (all.length > 0 && all.at(-1) === null) all = all.slice(0, -1)
  for (const snapshot of history) all = withPoint(all, toPoint(snapshot), SPAN)
  return all
}
