// The figures of a step as numbers by name, their medians, ratios and tables.

/** @import { StepResult } from './result.js' */

/** @typedef {Record<string, number>} Figures by name, with the unit as suffix */
/** @typedef {{name: string, result: Figures}} Column of a table */

/** @param {number} value @param {number} digits */
export const rounded = (value, digits) => Number(value.toFixed(digits))

/** Rounds a latency. @param {number} ms */
export const roundedMs = ms => rounded(ms, 2)

/** @param {number[]} values at least one @returns {number} */
function median(values) {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

/** @param {Figures[]} results of several runs @returns {Figures} each figure's median */
export const medians = results =>
  Object.fromEntries(
    Object.keys(results[0]).map(name => [name, median(results.map(result => result[name] ?? 0))]),
  )

/** @param {Figures} result @param {Figures} control @returns {Figures} result / control, if the control is not 0 */
export const ratios = (result, control) =>
  Object.fromEntries(
    Object.keys(result)
      .filter(name => control[name] > 0)
      .map(name => [name, rounded(result[name] / control[name], 3)]),
  )

/** @param {number | undefined} value */
export const formatted = value =>
  value === undefined
    ? '-'
    : value.toLocaleString('en', { maximumFractionDigits: Math.abs(value) < 100 ? 2 : 1 })

/** A row for each figure and a column for each run or comparison. @param {string} title @param {Column[]} columns */
export function table(title, columns) {
  const names = Object.keys(columns[0].result)
  const cells = [
    [title, ...columns.map(({ name }) => name)],
    ...names.map(name => [name, ...columns.map(({ result }) => formatted(result[name]))]),
  ]
  const widths = cells[0].map((_, column) => Math.max(...cells.map(row => row[column].length)))
  const lines = cells.map(([head, ...figures]) =>
    [head.padEnd(widths[0]), ...figures.map((figure, i) => figure.padStart(widths[i + 1]))].join('  '),
  )
  return `${[lines[0], widths.map(width => '-'.repeat(width)).join('  '), ...lines.slice(1)].join('\n')}\n`
}

/** The same in Markdown. @param {string} title @param {Column[]} columns */
export function markdownTable(title, columns) {
  const row = (/** @type {string[]} */ cells) => `| ${cells.join(' | ')} |\n`
  const names = Object.keys(columns[0].result)
  return [
    row([title, ...columns.map(({ name }) => name)]),
    row(['---', ...columns.map(() => '---:')]),
    ...names.map(name => row([`\`${name}\``, ...columns.map(({ result }) => formatted(result[name]))])),
  ].join('')
}

/** @param {Record<string, number>} parts % of a core @param {number} rate per second @param {string} unit */
const cpuPer = (parts, rate, unit) =>
  Object.fromEntries(
    Object.entries(rate > 0 ? parts : {}).map(([part, cpu]) => [
      `${part}_cpu_us_per_${unit}`,
      rounded((cpu * 1e4) / rate, 2),
    ]),
  )

/** @param {StepResult} step @returns {Figures} unknown ones are missing */
export function figuresOf(step) {
  const { accounting: all, ramp, connect, latency, answer, published, received, reopened } = step
  const { server, gateway } = step
  const isLoaded = step.publishRate > 0 || latency.count > 0
  const parts = { ...server?.parts, ...(server?.redisCpu != null && { redis: server.redisCpu }) }
  return {
    connections: step.connections.open,
    failed: all.failed,
    closed: all.ended,
    ...(ramp.opened > 0 && {
      connects_per_s: Math.round(ramp.mean),
      connect_p50_ms: roundedMs(connect.p50),
      connect_p99_ms: roundedMs(connect.p99),
    }),
    ...(server?.connectCpu != null && { connect_cpu_us: rounded(server.connectCpu, 1) }),
    ...(server?.connection != null && { bytes_per_connection: rounded(server.connection, 0) }),
    ...(reopened > 0 && { reopened_per_s: Math.round(reopened), ...cpuPer(parts, reopened, 'open') }),
    ...(isLoaded && {
      expected: all.expected,
      delivered: all.received,
      missing: all.lost + all.unknown,
      order_faults: all.duplicates + all.disordered,
      damaged: all.damaged,
      publish_errors: all.unpublished,
      published_per_s: rounded(published, published < 100 ? 1 : 0),
      delivered_per_s: Math.round(received),
      p50_ms: roundedMs(latency.p50),
      p99_ms: roundedMs(latency.p99),
      max_ms: roundedMs(latency.max),
      publish_p50_ms: roundedMs(answer.p50),
      publish_p99_ms: roundedMs(answer.p99),
      publish_max_ms: roundedMs(answer.max),
      ...(server && { cpu_us_per_message: rounded((server.cpu * 1e4) / Math.max(1, received), 2) }),
      ...cpuPer(parts, published, 'publish'),
    }),
    ...(step.recover && { reconnects: all.reconnects, missed: all.missed, unrecovered: all.unrecovered }),
    ...(server && { [isLoaded ? 'server_cpu_percent' : 'idle_cpu_percent']: rounded(server.cpu, 1) }),
    ...Object.fromEntries(
      Object.entries(parts).map(([part, cpu]) => [`${part}_cpu_percent`, rounded(cpu, 1)]),
    ),
    ...(gateway && {
      tick_avg_ms: roundedMs(gateway.ticks.average),
      tick_max_ms: roundedMs(gateway.ticks.max),
      opening_tick_max_ms: roundedMs(gateway.ticks.opening),
      gc_ms_per_s: roundedMs(gateway.gc),
      heap_used_mb: rounded(gateway.heapUsed / 1e6, 1),
      heap_total_mb: rounded(gateway.heapTotal / 1e6, 1),
      rss_mb: rounded(gateway.rss / 1e6, 1),
    }),
    load_cpu_percent: Math.round(step.drones.reduce((sum, { cpu }) => sum + cpu, 0)),
    ...step.figures,
  }
}
