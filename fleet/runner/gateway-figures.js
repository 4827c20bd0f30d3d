// Figures of a run and its steps from the gateway's CSV file.

import { readCsv } from '../../src/metrics/csv-reader.js'
import { summarize } from '../../src/pages/report/summary.js'

/** @import { GatewayResult, StepGateway, StepResult } from './result.js' */

/** @typedef {Record<string, Float64Array>} Columns */
/** @typedef {Pick<StepResult, 'began' | 'ended' | 'ramp'>} Stretch */

/** @param {number[]} values */
const mean = values =>
  values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length

/** @param {number} value */
const orNull = value => (Number.isFinite(value) ? value : null)

/** Known values. @param {Columns} columns @param {string} name @param {number} from Unix ms @param {number} to */
function between(columns, name, from, to) {
  const { time, [name]: values } = columns
  if (values === undefined) return []
  const found = []
  for (let row = 0; row < time.length; row++) {
    const value = values[row]
    if (time[row] > from && time[row] <= to && Number.isFinite(value)) found.push(value)
  }
  return found
}

/** @param {Columns} columns @param {Stretch} step @returns {StepGateway | null} null: no rows */
function stepOf(columns, { began, ended, ramp }) {
  const of = (/** @type {string} */ name) => between(columns, name, began, ended)
  const cpu = of('cpu_pct')
  if (cpu.length === 0) return null
  const intervals = of('interval_ms')
  const seconds = intervals.reduce((sum, ms) => sum + ms, 0) / 1000
  return {
    cpu: mean(cpu),
    cpuPeak: Math.max(...cpu),
    machineCpu: mean(of('machine_cpu_user_pct')) + mean(of('machine_cpu_system_pct')),
    ticks: {
      average: mean(of('tick_avg_ms')),
      p90: mean(of('tick_p90_ms')),
      max: Math.max(0, ...of('tick_max_ms')),
      opening: Math.max(0, ...between(columns, 'tick_max_ms', began - ramp.seconds * 1000, began)),
    },
    gc: mean(of('gc_major_ms')) + mean(of('gc_minor_ms')),
    heapUsed: mean(of('heap_used_bytes')),
    heapTotal: mean(of('heap_total_bytes')),
    rss: mean(of('rss_bytes')),
    connections: mean(of('connections')),
    messagesOut: seconds > 0 ? of('messages_out').reduce((sum, value) => sum + value, 0) / seconds : 0,
    tcpMemory: mean(of('tcp_memory_bytes')),
    slab: mean(of('slab_bytes')),
    sockets: mean(of('tcp_sockets')),
  }
}

/** Null: an empty file. @param {string} file gateway.csv @param {Stretch[]} steps */
export async function gatewayFigures(file, steps) {
  const table = await readCsv(file).catch(() => null)
  if (table === null || !table.columns.time?.some(time => time > 0)) return null
  const { columns } = table
  const { connection, peaks, sums } = summarize(columns)
  return {
    gateway: {
      facts: table.facts.at(-1)?.facts ?? {},
      connection: {
        heap: orNull(connection.heap),
        native: orNull(connection.native),
        user: orNull(connection.user),
        kernel: orNull(connection.kernel),
      },
      workerExits: orNull(peaks.worker_deaths) ?? 0,
      listenOverflows: orNull(sums.listen_overflows) ?? 0,
    },
    steps: steps.map(step => stepOf(columns, step)),
  }
}
