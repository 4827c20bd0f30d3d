// Chart definitions for reports and the admin page, not for the demo page.

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
 * @property {boolean} [plain] only the plot, without axes, title and value
 * @property {number} [minTop] lowest upper end of the left axis
 * @property {SeriesDefinition[]} series
 */

/**
 * @param {string} id @param {string} title @param {string} note @param {Unit} unit
 * @param {Partial<ChartDefinition>} more @param {SeriesDefinition[]} series @returns {ChartDefinition}
 */
const chart = (id, title, note, unit, more, series) => ({ id, title, note, unit, ...more, series })

/** @param {string} label @param {string} column @param {string} color @param {Partial<SeriesDefinition>} [more] */
const line = (label, column, color, more) => ({ label, column, color, ...more })

const MEMORY_NOTE =
  'Of the gateway. Kernel: sockets of its connections and the data queued in them. Native and JS heap: resident memory of its processes.'
const TICKS_NOTE =
  'How long events waited for the event loop, measured every 10 ms; the lines are moving averages.'
const CPU_NOTE = 'Of the gateway; 100 % is one core.'
const right = true
const peaks = true

/** @type {readonly ChartDefinition[]} */
export const CHARTS = Object.freeze([
  chart('memory', 'Memory', MEMORY_NOTE, 'bytes', { right: 'count', stacked: true, wide: true }, [
    line('Kernel', 'kernel_bytes', 'kernel'),
    line('Native', 'native_bytes', 'native'),
    line('JS heap', 'heap_total_bytes', 'heap'),
    line('Connections', 'connections', 'connections', { stroke: 'dots', right }),
  ]),
  chart('ticks', 'Event-loop delay', TICKS_NOTE, 'ms', { logarithmic: true, smooth: true, wide: true }, [
    line('Max', 'tick_max_ms', 'high', { peaks }),
    line('p90', 'tick_p90_ms', 'middle'),
    line('Average', 'tick_avg_ms', 'low'),
  ]),
  chart('cpu', 'CPU', CPU_NOTE, 'pct', {}, [
    line('Machine', 'machine_cpu_busy_pct', 'quiet', { stroke: 'dashes' }),
    line('Total', 'cpu_pct', 'total'),
    line('User', 'cpu_user_pct', 'user'),
    line('System', 'cpu_system_pct', 'system'),
  ]),
  chart(
    'arrivals',
    'Connections',
    'Opened and closed: per second, right axis.',
    'count',
    { right: 'count_s' },
    [
      line('Open', 'connections', 'connections'),
      line('Opened', 'accepts_s', 'in', { right }),
      line('Closed', 'closes_s', 'out', { right }),
    ],
  ),
  chart('messages', 'Messages', 'In: commands and pongs. Out: replies, pushes and pings.', 'count_s', {}, [
    line('Out', 'messages_out_s', 'out'),
    line('In', 'messages_in_s', 'in'),
  ]),
  chart('bandwidth', 'Bandwidth', 'Of the machine, with all headers.', 'bytes_s', {}, [
    line('Sent', 'net_tx_bytes_s', 'out'),
    line('Received', 'net_rx_bytes_s', 'in'),
  ]),
  chart('gc', 'Garbage collection', 'Pauses in each second, of all workers together.', 'ms', {}, [
    line('Major', 'gc_major_pause_ms', 'high', { peaks }),
    line('Minor', 'gc_minor_pause_ms', 'low', { peaks }),
  ]),
  chart(
    'connection',
    'Memory of a connection',
    'Without the memory of the idle gateway; known from 1,000 connections.',
    'bytes',
    {},
    [
      line('Together', 'total_per_connection', 'quiet', { stroke: 'dashes' }),
      line('Kernel', 'kernel_per_connection', 'kernel'),
      line('User', 'user_per_connection', 'native'),
      line('JS heap', 'heap_per_connection', 'heap'),
    ],
  ),
])

/**
 * @param {string} id @param {string} title @param {string} note @param {Unit} unit @param {string} column
 * @param {Partial<ChartDefinition>} [more]
 */
const oneLine = (id, title, note, unit, column, more = {}) =>
  chart(id, title, note, unit, more, [line('', column, 'run-1')])

/** Charts with one line per run: the label of the series is unused. @type {readonly ChartDefinition[]} */
export const COMPARED = Object.freeze([
  oneLine('connections', 'Connections', '', 'count', 'connections'),
  oneLine(
    'memory',
    'Memory',
    'Resident memory of the gateway, and kernel memory of its connections.',
    'bytes',
    'memory_bytes',
  ),
  oneLine('cpu', 'CPU', CPU_NOTE, 'pct', 'cpu_pct'),
  oneLine('ticks', 'Event-loop delay, p90', 'Moving average.', 'ms', 'tick_p90_ms', {
    logarithmic: true,
    smooth: true,
  }),
  oneLine('messages', 'Messages out', '', 'count_s', 'messages_out_s'),
  oneLine('connection', 'Memory of a connection', 'User space and kernel.', 'bytes', 'total_per_connection'),
])

/** @type {readonly string[]} */
export const CHART_COLUMNS = Object.freeze([
  ...new Set([
    'time',
    ...[...CHARTS, ...COMPARED].flatMap(({ series }) => series.map(({ column }) => column)),
  ]),
])
