// The figures of a run as numbers by name, for tables and comparisons. A name ends with its unit, if it has one.

import { rounded, roundedMs } from './table.js'

/** @typedef {import('./table.js').Result} Figures */
/** @typedef {import('./result.js').StepResult} StepResult */

/** @param {number | null} value @param {number} digits @param {string} name @returns {Figures} empty: unknown */
const known = (value, digits, name) => (value === null ? {} : { [name]: rounded(value, digits) })

/** @param {StepResult} step @returns {Figures} */
export function figuresOf({ connections, ramp, connect, accounting, server, drones, ...step }) {
  const { failed, ended, lost, unknown, duplicates, disordered, damaged, missed } = accounting
  const { unrecovered, reconnects, unpublished } = accounting
  const { latency, answer, received, published, publishRate } = step
  const droneCpu = drones.map(({ cpu }) => cpu)
  return {
    connections: connections.open,
    failed,
    closed: ended,
    ...(ramp.opened > 0 && {
      connects_per_s: Math.round(ramp.mean),
      connect_p50_ms: roundedMs(connect.p50),
      connect_p99_ms: roundedMs(connect.p99),
    }),
    ...known(server?.connectCpu ?? null, 1, 'connect_cpu_us'),
    ...known(server?.connection ?? null, 0, 'bytes_per_connection'),
    ...(publishRate > 0 && {
      expected: accounting.expected,
      delivered: accounting.received,
      missing: lost + unknown,
      order_faults: duplicates + disordered,
      damaged,
      publish_errors: unpublished,
      published_per_s: rounded(published, published < 100 ? 1 : 0),
      delivered_per_s: Math.round(received),
      p50_ms: roundedMs(latency.p50),
      p99_ms: roundedMs(latency.p99),
      max_ms: roundedMs(latency.max),
      publish_p99_ms: roundedMs(answer.p99),
      publish_max_ms: roundedMs(answer.max),
      ...(server && { cpu_us_per_message: rounded((server.cpu * 1e4) / Math.max(1, received), 2) }),
    }),
    ...(step.recover && { reconnects, missed, unrecovered }),
    ...known(server?.cpu ?? null, 1, 'server_cpu_percent'),
    ...known(server?.redisCpu ?? null, 1, 'redis_cpu_percent'),
    ...(server?.redisCpu != null &&
      published > 0 && { redis_cpu_us_per_publish: rounded((server.redisCpu * 1e4) / published, 2) }),
    load_cpu_percent: Math.round(droneCpu.reduce((sum, cpu) => sum + cpu, 0)),
  }
}
