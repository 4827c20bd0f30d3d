/** @import { WorkerSample } from '../../metrics/schema.js' */
/** @import { WorkerProcess } from './worker-process.js' */

/** A worker rests above this multiple of the mean of those that accept, plus a number that is no burden for any. */
const SHARE = 1.25
const FEW = 64

/**
 * Which workers leave new connections to others, of those that share a listening socket. The kernel wakes all of them
 * for a connection, and the first one gets it. Under load that is even; at a few connections a second the same worker
 * may win most times. A worker that refuses connections, because it is overloaded or out of descriptors, is no one
 * to leave them to. At least one of the others accepts: none can all be above their mean.
 *
 * @param {(Pick<WorkerSample, 'accepting' | 'overload' | 'connections'> | null)[]} samples the last one of each worker
 *   that lives; null: none yet
 * @returns {boolean[]} by worker
 */
export function resting(samples) {
  const counts = samples.flatMap(sample =>
    sample?.accepting && sample.overload === null ? [sample.connections.open] : [],
  )
  const mean = counts.reduce((sum, count) => sum + count, 0) / counts.length
  const limit = SHARE * mean + FEW
  return samples.map(sample => sample !== null && sample.connections.open > limit)
}

/** Tells workers that share a listening socket when to rest, and when to accept again. @param {WorkerProcess[]} processes */
export function balance(processes) {
  const healthy = processes.filter(({ healthy }) => healthy)
  const rest = resting(healthy.map(({ sample }) => sample))
  healthy.forEach((process, at) => {
    if (process.resting === rest[at]) return
    process.resting = rest[at]
    process.send({ type: 'rest', on: rest[at] })
  })
}
