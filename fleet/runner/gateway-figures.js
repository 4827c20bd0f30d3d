// Figures of a run and its steps from the gateway's CSV file.

import { readCsv } from '../../src/metrics/csv-reader.js'
import { summarize } from '../../src/pages/report/summary.js'

/** @typedef {import('./result.js').GatewayResult} GatewayResult */
/** @typedef {import('./result.js').StepGateway} StepGateway */
/** @typedef {Record<string, Float64Array>} Columns */

/** @param {number[]} values */
const mean = values =>
  values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length

/** @param {number} value */
const orNull = value => (Number.isFinite(value) ? value : null)

/**
 * @param {Columns} columns @param {string} name @param {number} from Unix ms @param {number} to
 * @returns {number[]} known values of the rows between
 */
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

/**
 * @param {Columns} columns @param {{began: number, ended: number}} step @returns {StepGateway | null} null: no rows
 */
function stepOf(columns, { began, ended }) {
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
    },
    rss: mean(of('rss_bytes')),
    connections: mean(of('connections')),
    messagesOut: seconds > 0 ? of('messages_out').reduce((sum, value) => sum + value, 0) / seconds : 0,
    tcpMemory: mean(of('tcp_memory_bytes')),
    slab: mean(of('slab_bytes')),
    sockets: mean(of('tcp_sockets')),
  }
}

/**
 * @param {string} file gateway.csv @param {{began: number, ended: number}[]} steps
 * @returns {Promise<{gateway: GatewayResult, steps: (StepGateway | null)[]} | null>} null: an empty file
 */
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
      workerDeaths: orNull(peaks.worker_deaths) ?? 0,
      listenOverflows: orNull(sums.listen_overflows) ?? 0,
    },
    steps: steps.map(step => stepOf(columns, step)),
  }
}
