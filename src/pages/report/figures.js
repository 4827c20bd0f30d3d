// The tables of a report: their figures and labels.

import { bytes, elapsed, formatValue, UNKNOWN } from '../../base/format.js'

/** @import { Unit } from '../../base/format.js' */
/** @import { Run } from './run.js' */
/** @import { Table } from './sections.js' */
/** @import { Summary } from './summary.js' */

/**
 * @typedef {object} Figure
 * @property {string} label
 * @property {string} [hint] explains the label
 * @property {(summary: Summary) => string} text
 */

/**
 * @param {string} label @param {Unit} unit @param {(summary: Summary) => number} value @param {string} [hint]
 * @returns {Figure}
 */
const figure = (label, unit, value, hint) => ({
  label,
  hint,
  text: summary => formatValue(value(summary), unit),
})

/** @param {string} label @param {Unit} unit @param {string} name @returns {Figure} */
const peak = (label, unit, name) => figure(label, unit, ({ peaks }) => peaks[name])

/** @param {string} label @param {Unit} unit @param {string} name @returns {Figure} */
const steady = (label, unit, name) => figure(label, unit, summary => summary.steady[name])

/** Unknown instead of 0. @param {string} label @param {(summary: Summary) => number} value @returns {Figure} */
const occurring = (label, value) => figure(label, 'count', summary => value(summary) || Number.NaN)

/** @param {Summary} summary @param {...string} names */
const total = ({ sums }, ...names) =>
  names.every(name => Number.isNaN(sums[name]))
    ? Number.NaN
    : names.reduce((sum, name) => sum + (sums[name] || 0), 0)

/** @type {readonly {title: string, figures: readonly Figure[]}[]} */
const FIGURES = Object.freeze([
  {
    title: 'The run',
    figures: [
      { label: 'Duration', text: ({ seconds }) => elapsed(seconds) },
      peak('Connections', 'count', 'connections'),
      figure('Connections opened', 'count', ({ sums }) => sums.accepts),
      figure('Messages out', 'count', ({ sums }) => sums.messages_out),
      figure('Errors', 'count', ({ sums }) => sums.errors, 'error replies'),
      peak('Worker exits', 'count', 'worker_deaths'),
      figure('Listen-queue overflows', 'count', ({ sums }) => sums.listen_overflows),
    ],
  },
  {
    title: 'Peaks in one second',
    figures: [
      peak('Accepts', 'count_s', 'accepts_s'),
      peak('Messages out', 'count_s', 'messages_out_s'),
      peak('Messages in', 'count_s', 'messages_in_s'),
      peak('Bandwidth sent', 'bytes_s', 'net_tx_bytes_s'),
      peak('CPU of the gateway', 'pct', 'cpu_pct'),
      peak('CPU of the machine', 'pct', 'machine_cpu_busy_pct'),
      peak('Event-loop delay, p90', 'ms', 'tick_p90_ms'),
      peak('Event-loop delay, max', 'ms', 'tick_max_ms'),
      peak('Major GC pauses', 'ms', 'gc_major_pause_ms'),
      peak('Resident memory', 'bytes', 'rss_bytes'),
    ],
  },
  {
    title: 'Steady state',
    figures: [
      {
        label: 'Period',
        hint: 'the values are medians',
        text: ({ stretch }) =>
          `${elapsed(stretch.seconds)}${stretch.kind === 'busiest' ? ', the busiest' : ''}`,
      },
      steady('Connections', 'count', 'connections'),
      steady('Messages out', 'count_s', 'messages_out_s'),
      steady('Messages in', 'count_s', 'messages_in_s'),
      steady('Bandwidth sent', 'bytes_s', 'net_tx_bytes_s'),
      steady('CPU, user', 'pct', 'cpu_user_pct'),
      steady('CPU, system', 'pct', 'cpu_system_pct'),
      steady('Event-loop delay, average', 'ms', 'tick_avg_ms'),
      steady('Event-loop delay, p90', 'ms', 'tick_p90_ms'),
      steady('Event-loop delay, max', 'ms', 'tick_max_ms'),
      steady('Loop, busiest worker', 'pct', 'loop_busy_pct'),
      steady('Resident memory', 'bytes', 'rss_bytes'),
    ],
  },
  {
    title: 'Maps',
    figures: [
      occurring('Keys, peak', ({ peaks }) => peaks.map_keys),
      occurring('Publishes', ({ sums }) => sums.map_publishes),
      occurring('Removals', ({ sums }) => sums.map_removals),
      occurring('Expiries', ({ sums }) => sums.map_expiries),
    ],
  },
  {
    title: 'Memory of a connection',
    figures: [
      { label: 'Unknown', text: ({ connection }) => connection.unknown || UNKNOWN },
      figure('JS heap', 'bytes', ({ connection }) => connection.heap),
      figure('Native', 'bytes', ({ connection }) => connection.native),
      figure('User space', 'bytes', ({ connection }) => connection.user, 'JS heap and native'),
      figure('Kernel', 'bytes', s => s.connection.kernel, 'the socket and the data queued in it'),
      figure('Total', 'bytes', ({ connection }) => connection.total, 'user space and kernel'),
    ],
  },
  {
    title: 'Garbage collection',
    figures: [
      figure('Minor', 'count', ({ sums }) => sums.gc_minor),
      figure('Minor, paused', 'ms', ({ sums }) => sums.gc_minor_ms),
      figure('Major', 'count', ({ sums }) => sums.gc_major),
      figure('Major, paused', 'ms', s => total(s, 'gc_major_ms', 'gc_incremental_ms', 'gc_weak_ms')),
    ],
  },
])

/** Omits figures that no run has. @param {Run[]} runs @returns {Table} */
export function figuresTable(runs) {
  const groups = FIGURES.map(({ title, figures }) => ({
    title,
    rows: figures
      .map(({ label, hint, text }) => ({ label, hint, cells: runs.map(({ summary }) => text(summary)) }))
      .filter(({ cells }) => cells.some(cell => cell !== UNKNOWN)),
  }))
  return {
    title: 'Figures',
    note: '',
    columns: runs.length === 1 ? [] : runs.map(({ label }) => label),
    marked: true,
    groups: groups.filter(({ rows }) => rows.length > 0),
  }
}

/** The most important figures. @param {Run} run @returns {{label: string, value: string, note: string}[]} */
export function headlines({ summary }) {
  const { peaks, steady: medians, connection, stretch } = summary
  const when = stretch.kind === 'steady' ? 'steady state' : 'busiest part'
  const memory = `${formatValue(connection.user, 'bytes')} user, ${formatValue(connection.kernel, 'bytes')} kernel`
  const peak = (/** @type {string} */ name, /** @type {Unit} */ unit) => formatValue(peaks[name], unit)
  /** @type {[string, number, Unit, string][]} */
  const all = [
    ['Connections', peaks.connections, 'count', 'maximum'],
    ['Memory of a connection', connection.total, 'bytes', memory],
    ['Accepts', peaks.accepts_s, 'count_s', 'peak'],
    ['Messages out', medians.messages_out_s, 'count_s', `${when}; peak ${peak('messages_out_s', 'count_s')}`],
    ['Event-loop delay, p90', medians.tick_p90_ms, 'ms', `${when}; longest ${peak('tick_max_ms', 'ms')}`],
    ['CPU, of a core', medians.cpu_pct, 'pct', `${when}; peak ${peak('cpu_pct', 'pct')}`],
  ]
  return all
    .filter(([, value]) => !Number.isNaN(value) && value !== undefined)
    .map(([label, value, unit, note]) => ({ label, value: formatValue(value, unit), note }))
}

/** Software and machine, as far as the file has them. @param {Run} run @returns {string[]} */
export function factsOf({ facts, starts, summary }) {
  const { version, node_version: node, driver, engine, workers, cores, memory, name } = facts
  const known = [
    name,
    version && `Halley ${version}`,
    node && `Node.js ${node.replace(/^v/, '')}`,
    driver && engine && `${driver} server, ${engine} engine`,
    workers && `${workers} ${workers === '1' ? 'worker' : 'workers'}`,
    cores && `${cores} ${cores === '1' ? 'core' : 'cores'}`,
    memory && `${bytes(Number(memory))} of memory`,
    starts > 1 && `started ${starts} times`,
  ].filter(fact => typeof fact === 'string' && fact !== '')
  return [...known, `${formatValue(summary.rows, 'count')} seconds`].map(String)
}
