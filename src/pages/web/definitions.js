// The table of charts for reports and the admin page. The demo page has its own.

/** @import { Unit } from '../../base/format.js' */

/**
 * @typedef {object} SeriesDefinition
 * @property {string} label
 * @property {string} column of the CSV, or derived (derive.js)
 * @property {string} color custom property `--chart-COLOR`
 * @property {'line' | 'dots' | 'dashes'} [stroke]
 * @property {boolean} [right] uses the right axis
 * @property {boolean} [area] filled with the custom property `--chart-COLOR-area`
 * @property {boolean} [peaks] draw the maximum of a bucket of rows instead of the average
 *
 * @typedef {object} ChartDefinition
 * @property {string} id
 * @property {string} title
 * @property {string} note
 * @property {Unit} unit
 * @property {Unit} [right] unit of the right axis
 * @property {boolean} [stacked] stacked areas, the last series at the bottom
 * @property {boolean} [logarithmic]
 * @property {boolean} [smooth] a moving average over faint values
 * @property {boolean} [wide] full width
 * @property {boolean} [plain] only the plot, without axes, for a place that shows title and value itself
 * @property {number} [least] lowest upper end of the left axis
 * @property {SeriesDefinition[]} series
 */

/** @type {readonly ChartDefinition[]} */
export const CHARTS = Object.freeze([
  {
    id: 'memory',
    title: 'Memory',
    note: 'Of the gateway. Kernel: sockets of its connections and the data queued in them. Native and JS heap: resident memory of its processes.',
    unit: 'bytes',
    right: 'count',
    stacked: true,
    wide: true,
    series: [
      { label: 'Kernel', column: 'kernel_bytes', color: 'kernel' },
      { label: 'Native', column: 'native_bytes', color: 'native' },
      { label: 'JS heap', column: 'heap_total_bytes', color: 'heap' },
      { label: 'Connections', column: 'connections', color: 'connections', stroke: 'dots', right: true },
    ],
  },
  {
    id: 'ticks',
    title: 'Event-loop delay',
    note: 'How long events waited for the event loop, measured every 10 ms; the lines are moving averages.',
    unit: 'ms',
    logarithmic: true,
    smooth: true,
    wide: true,
    series: [
      { label: 'Max', column: 'tick_max_ms', color: 'high', peaks: true },
      { label: 'p90', column: 'tick_p90_ms', color: 'middle' },
      { label: 'Average', column: 'tick_avg_ms', color: 'low' },
    ],
  },
  {
    id: 'cpu',
    title: 'CPU',
    note: 'Of the gateway; 100 % is one core.',
    unit: 'pct',
    series: [
      { label: 'Machine', column: 'machine_cpu_busy_pct', color: 'quiet', stroke: 'dashes' },
      { label: 'Total', column: 'cpu_pct', color: 'total' },
      { label: 'User', column: 'cpu_user_pct', color: 'user' },
      { label: 'System', column: 'cpu_system_pct', color: 'system' },
    ],
  },
  {
    id: 'arrivals',
    title: 'Connections',
    note: 'Opened and closed: per second, right axis.',
    unit: 'count',
    right: 'count_s',
    series: [
      { label: 'Open', column: 'connections', color: 'connections' },
      { label: 'Opened', column: 'accepts_s', color: 'in', right: true },
      { label: 'Closed', column: 'closes_s', color: 'out', right: true },
    ],
  },
  {
    id: 'messages',
    title: 'Messages',
    note: 'In: commands and pongs. Out: replies, pushes and pings.',
    unit: 'count_s',
    series: [
      { label: 'Out', column: 'messages_out_s', color: 'out' },
      { label: 'In', column: 'messages_in_s', color: 'in' },
    ],
  },
  {
    id: 'bandwidth',
    title: 'Bandwidth',
    note: 'Of the machine, with all headers.',
    unit: 'bytes_s',
    series: [
      { label: 'Sent', column: 'net_tx_bytes_s', color: 'out' },
      { label: 'Received', column: 'net_rx_bytes_s', color: 'in' },
    ],
  },
  {
    id: 'gc',
    title: 'Garbage collection',
    note: 'Pauses in each second, of all workers together.',
    unit: 'ms',
    series: [
      { label: 'Major', column: 'gc_major_pause_ms', color: 'high', peaks: true },
      { label: 'Minor', column: 'gc_minor_pause_ms', color: 'low', peaks: true },
    ],
  },
  {
    id: 'connection',
    title: 'Memory of a connection',
    note: 'Without the memory of the idle gateway; known from 1,000 connections on.',
    unit: 'bytes',
    series: [
      { label: 'Together', column: 'total_per_connection', color: 'quiet', stroke: 'dashes' },
      { label: 'Kernel', column: 'kernel_per_connection', color: 'kernel' },
      { label: 'User', column: 'user_per_connection', color: 'native' },
      { label: 'JS heap', column: 'heap_per_connection', color: 'heap' },
    ],
  },
])

/** Charts with one line per run, so the label of their one series is unused. @type {readonly ChartDefinition[]} */
export const COMPARED = Object.freeze([
  oneLine('connections', 'Connections', '', 'count', 'connections'),
  oneLine(
    'memory',
    'Memory',
    'Resident memory of the gateway, and what the kernel holds for its connections.',
    'bytes',
    'memory_bytes',
  ),
  oneLine('cpu', 'CPU', 'Of the gateway; 100 % is one core.', 'pct', 'cpu_pct'),
  {
    ...oneLine('ticks', 'Event-loop delay, p90', 'Moving average.', 'ms', 'tick_p90_ms'),
    logarithmic: true,
    smooth: true,
  },
  oneLine('messages', 'Messages out', '', 'count_s', 'messages_out_s'),
  oneLine('connection', 'Memory of a connection', 'User space and kernel.', 'bytes', 'total_per_connection'),
])

/**
 * @param {string} id @param {string} title @param {string} note @param {Unit} unit @param {string} column
 * @returns {ChartDefinition}
 */
function oneLine(id, title, note, unit, column) {
  return { id, title, note, unit, series: [{ label: '', column, color: 'run-1' }] }
}

/** @type {readonly string[]} */
export const CHART_COLUMNS = Object.freeze([
  ...new Set([
    'time',
    ...[...CHARTS, ...COMPARED].flatMap(({ series }) => series.map(({ column }) => column)),
  ]),
])
