// What two snapshots say of the time between them.

import { latencyOf, noAccounting } from './result.js'

/** @typedef {import('../schema.js').FleetSnapshot} FleetSnapshot */
/** @typedef {import('../schema.js').DroneRow} DroneRow */
/** @typedef {import('./result.js').StepResult} StepResult */
/** @typedef {import('./result.js').DroneResult} DroneResult */

/** @param {DroneRow} row @returns {number} ms of processor time of its processes that are there */
const cpuOf = ({ sample }) => (sample?.processes ?? []).reduce((sum, { cpu }) => sum + cpu, 0)

/**
 * @param {FleetSnapshot} first
 * @param {FleetSnapshot} last
 * @returns {DroneResult[]}
 */
function droneResults(first, last) {
  return last.drones.map(row => {
    const before = first.drones.find(({ id }) => id === row.id)
    const { sample } = row
    const elapsed = (sample?.at ?? 0) - (before?.sample?.at ?? 0)
    const used = before ? cpuOf(row) - cpuOf(before) : 0
    return {
      id: row.id,
      where: row.where,
      connections: sample?.gauges.open ?? 0,
      processes: sample?.processes.length ?? 0,
      // A process that died took its time with it.
      cpu:
        elapsed > 0 && used >= 0 && before?.restarts === row.restarts
          ? (used / elapsed) * 100
          : row.cpu * 100,
      memory: (sample?.processes ?? []).reduce((sum, process) => sum + process.private, 0),
      bytesPerConnection: row.bytesPerConnection,
      p99: row.p99,
      clockError: sample?.clock.error ?? 0,
    }
  })
}

/**
 * @param {FleetSnapshot} snapshot
 * @returns {StepResult['clock']} publisher and receiver may both be off
 */
function clockOf({ drones, latency, probe }) {
  if (latency.count === probe.count) return { error: 0, against: 'same machine' }
  const clocks = drones.map(({ sample }) => sample?.clock).filter(clock => clock !== undefined)
  const unknown = clocks.some(({ against }) => against === 'none')
  return {
    error: unknown ? 0 : 2 * Math.max(0, ...clocks.map(({ error }) => error)),
    against: unknown ? 'none' : 'gateway',
  }
}

/**
 * @param {object} options
 * @param {string} options.name
 * @param {FleetSnapshot} options.first
 * @param {FleetSnapshot} options.last
 * @param {number} options.least open connections in the worst second before any were to leave
 * @param {StepResult['ramp']} options.ramp
 * @param {import('../schema.js').DistributionWire} options.connect
 * @param {boolean} options.partial
 * @param {boolean} options.recover
 * @param {number} options.publishRate
 * @returns {StepResult} its accounting is added when the step has ended, its gateway when the run has
 */
export function measured({ name, first, last, least, ramp, connect, partial, recover, publishRate }) {
  const seconds = Math.max(0.001, (last.time - first.time) / 1000)
  const rate = (/** @type {'received' | 'published' | 'pings' | 'bytesIn' | 'bytesOut'} */ counter) =>
    Math.max(0, last.counters[counter] - first.counters[counter]) / seconds
  return {
    name,
    began: first.time,
    ended: last.time,
    seconds,
    partial,
    recover,
    publishRate,
    connections: {
      wanted: last.gauges.wanted,
      open: last.gauges.open,
      least,
    },
    ramp,
    received: rate('received'),
    published: rate('published'),
    pings: rate('pings'),
    bytesIn: rate('bytesIn'),
    bytesOut: rate('bytesOut'),
    latency: latencyOf(last.latency),
    probe: latencyOf(last.probe),
    connect: latencyOf(connect),
    answer: latencyOf(last.answer),
    accounting: noAccounting(),
    clock: clockOf(last),
    drones: droneResults(first, last),
    gateway: null,
    disturbances: [],
  }
}
