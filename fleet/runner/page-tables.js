// Tables of the report of one or more runs: a column or a group of rows for each.

import { bytes, count, formatValue, milliseconds, percent, UNKNOWN } from '../../src/base/format.js'
import { formatted } from './figures.js'

/** @import { Table } from '../../src/pages/report/sections.js' */
/** @import { Accounting, DroneResult, Latency, MachineFacts, RunResult, StepGateway, StepResult } from './result.js' */

/** @typedef {{label: string, result: RunResult}} Shown */

/** @param {number} value */
const rate = value => formatValue(value < 100 ? Number(value.toPrecision(3)) : Math.round(value), 'count_s')

/** @param {StepResult} step @param {(latency: Latency) => number} figure */
const ms = ({ latency }, figure) => (latency.count === 0 ? UNKNOWN : milliseconds(figure(latency)))

/** @template T @typedef {readonly [title: string, cell: (item: T) => string][]} Columns */

/** @template T @param {Columns<T>} columns @returns {string[]} */
const titlesOf = columns => columns.map(([title]) => title)

/** @template T @param {Columns<T>} columns @param {T} item @returns {string[]} */
const cellsOf = (columns, item) => columns.map(([, cell]) => cell(item))

const GROUPS = 3

/** Of runs with one step each: a column for each run. @param {Shown[]} runs @param {Columns<StepResult>} columns */
function byFigure(runs, columns) {
  const size = runs.length > 1 ? columns.length : Math.ceil(columns.length / GROUPS)
  const groups = []
  for (let from = 0; from < columns.length; from += size) {
    groups.push({
      title: from > 0 ? '\u00a0' : runs.length > 1 ? 'Step' : runs[0].result.steps[0].name,
      rows: columns.slice(from, from + size).map(([label, cell]) => ({
        label,
        cells: runs.map(({ result }) => cell(result.steps[0])),
      })),
    })
  }
  return { columns: runs.length > 1 ? runs.map(({ label }) => label) : [], groups }
}

/** A row for each step, and a group for each run. @param {Shown[]} runs @param {Columns<StepResult>} columns */
const byStep = (runs, columns) => ({
  names: true,
  columns: titlesOf(columns),
  groups: runs.map(({ label, result }) => ({
    title: runs.length > 1 ? label : 'Step',
    rows: result.steps.map(step => ({ label: step.name, cells: cellsOf(columns, step) })),
  })),
})

/** Narrow, if each run has one step. @param {Shown[]} runs @param {Columns<StepResult>} columns */
const stepTable = (runs, columns) =>
  runs.every(({ result }) => result.steps.length === 1) ? byFigure(runs, columns) : byStep(runs, columns)

/** @param {Shown[]} runs of one scenario @returns {Table | null} null: not published */
export function comparisonTable(runs) {
  const [{ result }] = runs
  if (result.published === null) return null
  const { source, machine, load } = result.published
  const first = runs.map(({ result: { load: ours } }) => ours)
  return {
    title: 'Comparison with the published run',
    note: `Published by ${source}. ${scalesText(runs)}The differences are listed below.`,
    columns: ['Published', ...(runs.length > 1 ? runs.map(({ label }) => label) : ['This run'])],
    words: true,
    groups: [
      {
        title: '',
        rows: [
          { label: 'Load', cells: [load, ...first] },
          {
            label: 'Machine',
            cells: [machine, ...runs.map(({ result: { machine: own } }) => machineText(own))],
          },
          ...result.comparison.map(({ label, value, note }, at) => ({
            label,
            hint: note,
            cells: [value, ...runs.map(({ result: { comparison } }) => comparison[at]?.ours || UNKNOWN)],
          })),
        ],
      },
    ],
  }
}

/** @param {Shown[]} runs @returns {string} a sentence and a space; '': nothing was scaled */
function scalesText(runs) {
  const scales = [...new Set(runs.map(({ result }) => result.scale))]
  if (scales.every(scale => scale === 1)) return ''
  const shares = scales.map(scale => `${Number((scale * 100).toPrecision(3))}\u202f%`)
  return `Scale: ${shares.join(' and ')} of the published connections. `
}

/** @param {MachineFacts} machine */
const machineText = ({ cores, memory, cpu }) =>
  `${cpu === '' ? '' : `${cpu}, `}${cores} ${cores === 1 ? 'core' : 'cores'}, ${Math.round(memory / 2 ** 30)} GB`

/** @type {Columns<StepResult>} */
const STEP_COLUMNS = [
  [
    'Connections',
    ({ connections: { open, wanted } }) =>
      open === wanted ? count(open) : `${count(open)} of ${count(wanted)}`,
  ],
  ['Opened', step => rate(step.ramp.mean)],
  ['Received', step => rate(step.received)],
  ['Pings', step => rate(step.pings)],
  ['Mean', step => ms(step, ({ mean }) => mean)],
  ['p99', step => ms(step, ({ p99 }) => p99)],
  ['Max', step => ms(step, ({ max }) => max)],
  ['Lost', ({ accounting: { expected, lost } }) => (expected > 0 ? count(lost) : UNKNOWN)],
  ['Gateway CPU', ({ gateway }) => (gateway === null ? UNKNOWN : percent(gateway.cpu))],
  ['Drone CPU', ({ drones }) => percent(drones.reduce((sum, { cpu }) => sum + cpu, 0))],
]

/** @param {Shown[]} runs @returns {Table} */
export const stepsTable = runs => ({
  title: 'Steps',
  note: 'Latency of all messages, from the scheduled send time to receipt. CPU: 100 % is one core.',
  ...stepTable(runs, STEP_COLUMNS),
})

/** Figures of the scenario itself. @param {Shown[]} runs @returns {Table | null} */
export function figuresTable(runs) {
  const names = new Set(
    runs.flatMap(({ result }) => result.steps.flatMap(({ figures }) => Object.keys(figures))),
  )
  if (names.size === 0) return null
  /** @type {Columns<StepResult>} */
  const columns = [...names].map(name => [name, ({ figures }) => formatted(figures[name])])
  return { title: 'Figures of the scenario', note: 'Names end with the unit.', ...stepTable(runs, columns) }
}

/** @param {StepResult} step @param {'mean90' | 'mean95'} which */
const interval = ({ latency }, which) =>
  latency.count === 0 ? UNKNOWN : `${milliseconds(latency[which].low)} – ${milliseconds(latency[which].high)}`

/** @type {Columns<StepResult>} */
const LATENCY_COLUMNS = [
  ['Messages', step => count(step.latency.count)],
  ['Min', step => ms(step, ({ min }) => min)],
  ['Mean', step => ms(step, ({ mean }) => mean)],
  ['Mean, 90 % CI', step => interval(step, 'mean90')],
  ['Mean, 95 % CI', step => interval(step, 'mean95')],
  ['Standard deviation', step => ms(step, ({ deviation }) => deviation)],
  ['p50', step => ms(step, ({ p50 }) => p50)],
  ['p90', step => ms(step, ({ p90 }) => p90)],
  ['p99', step => ms(step, ({ p99 }) => p99)],
  ['p99.9', step => ms(step, ({ p999 }) => p999)],
  ['Max', step => ms(step, ({ max }) => max)],
]

/** @param {Shown[]} runs @returns {Table | null} */
export function latencyTable(runs) {
  if (!runs.some(({ result }) => result.steps.some(({ latency }) => latency.count > 0))) return null
  return { title: 'Latency', note: clockText(runs), ...stepTable(runs, LATENCY_COLUMNS) }
}

/** @param {Shown[]} runs */
function clockText(runs) {
  const clocks = runs.flatMap(({ result }) =>
    result.steps.filter(({ latency }) => latency.count > 0).map(({ clock }) => clock),
  )
  const base =
    'All messages of the measured time. CI: confidence interval of the mean (normal approximation).'
  if (clocks.some(({ against }) => against === 'none'))
    return `${base} The target does not send its time, so only latencies on the publisher’s own machine are exact.`
  const worst = Math.max(0, ...clocks.map(({ error }) => error))
  return clocks.every(({ against }) => against === 'same machine')
    ? `${base} Publishers and receivers share one clock.`
    : `${base} Clocks were compared with the gateway’s: the error of a latency is at most ${milliseconds(worst)}.`
}

/** @param {Shown[]} runs @returns {Table} */
export function accountingTable(runs) {
  /** @type {[string, string, (accounting: Accounting) => number][]} */
  const messages = [
    ['Published', 'confirmed by the target', a => a.published],
    ['Not confirmed', '', a => a.unpublished],
    ['Expected', 'sum over all subscriptions', a => a.expected],
    ['Received', '', a => a.received],
    ['Lost', 'in gaps and at the end', a => a.lost],
    ['Duplicates', '', a => a.duplicates],
    ['Out of order', '', a => a.disordered],
    ['Damaged', '', a => a.damaged],
    ['Missed while disconnected', 'without recovery', a => a.missed],
    ['Pings', '', a => a.pings],
  ]
  /** @type {typeof messages} */
  const connections = [
    ['Opened', '', a => a.opened],
    ['Reopened', 'of these', a => a.reconnects],
    ['Failed attempts', '', a => a.failed],
    ['Ended', 'unexpectedly', a => a.ended],
    ['Closed by drones', '', a => a.closed],
    ['Subscriptions recovered', '', a => a.recovered],
    ['Subscriptions not recovered', '', a => a.unrecovered],
    ['Subscriptions refused', '', a => a.refused],
    ['Subscriptions unknown', 'loss cannot be determined', a => a.unknown],
  ]
  const rows = (/** @type {typeof messages} */ list) =>
    list.map(([label, hint, value]) => ({
      label,
      hint,
      cells: runs.map(({ result }) => count(value(result.accounting))),
    }))
  return {
    title: 'Accounting',
    note: 'Counts of the whole run. Messages are numbered, and each subscription is compared with the published messages.',
    columns: runs.length > 1 ? runs.map(({ label }) => label) : [],
    groups: [
      { title: 'Messages', rows: rows(messages) },
      { title: 'Connections', rows: rows(connections) },
    ],
  }
}

/** @type {Columns<DroneResult>} */
const DRONE_COLUMNS = [
  ['Location', ({ where }) => where],
  ['Connections', ({ connections }) => count(connections)],
  ['Processes', ({ processes }) => count(processes)],
  ['CPU', ({ cpu }) => percent(cpu)],
  ['Memory', ({ memory }) => bytes(memory)],
  ['Memory per connection', ({ bytesPerConnection: own }) => (own > 0 ? bytes(own) : UNKNOWN)],
  ['p99', ({ p99 }) => (p99 > 0 ? milliseconds(p99) : UNKNOWN)],
  ['Clock error, max', ({ clockError }) => (clockError > 0 ? milliseconds(clockError) : UNKNOWN)],
]

/** @param {Shown[]} runs @returns {Table} of the last step */
export const dronesTable = runs => ({
  title: 'Drones',
  note: 'In the last step. Memory per connection: user space of the drone, not of the gateway, above that of its processes before their first connection; requires 200 connections.',
  columns: titlesOf(DRONE_COLUMNS),
  groups: runs.map(({ label, result }) => ({
    title: runs.length > 1 ? label : 'Drone',
    rows: (result.steps.at(-1)?.drones ?? []).map(drone => ({
      label: drone.id,
      cells: cellsOf(DRONE_COLUMNS, drone),
    })),
  })),
})

/** @param {(gateway: StepGateway) => string} cell @returns {(step: StepResult) => string} */
const ofGateway =
  cell =>
  ({ gateway }) =>
    gateway === null ? UNKNOWN : cell(gateway)

/** @type {Columns<StepResult>} */
const GATEWAY_COLUMNS = [
  ['CPU', ofGateway(({ cpu }) => percent(cpu))],
  ['CPU, peak', ofGateway(({ cpuPeak }) => percent(cpuPeak))],
  ['CPU, machine', ofGateway(({ machineCpu }) => percent(machineCpu))],
  ['Event-loop delay, average', ofGateway(({ ticks }) => milliseconds(ticks.average))],
  ['Event-loop delay, p90', ofGateway(({ ticks }) => milliseconds(ticks.p90))],
  ['Event-loop delay, max', ofGateway(({ ticks }) => milliseconds(ticks.max))],
  ['Resident memory', ofGateway(({ rss }) => bytes(rss))],
  ['TCP buffers', ofGateway(({ tcpMemory }) => bytes(tcpMemory))],
  ['Slab', ofGateway(({ slab }) => bytes(slab))],
  ['TCP sockets', ofGateway(({ sockets }) => count(Math.round(sockets)))],
]

/** @param {Shown[]} runs @returns {Table | null} */
export function gatewayTable(runs) {
  const known = runs.filter(({ result }) => result.steps.some(({ gateway }) => gateway !== null))
  if (known.length === 0) return null
  return {
    title: 'Gateway by step',
    note: 'Means over the measured time. TCP buffers, slab and sockets are of the whole machine, including local drones.',
    ...stepTable(known, GATEWAY_COLUMNS),
  }
}

/** @param {Shown[]} runs @returns {Table | null} */
export function limitsTable(runs) {
  const groups = runs
    .filter(({ result }) => result.limits.length > 0)
    .map(({ label, result }) => ({
      title: runs.length > 1 ? label : '',
      rows: result.limits.map(({ limit, asked, step, ours, broken }) => ({
        label: `${limit} ${asked}`,
        hint: step,
        cells: [ours, broken ? 'violated' : 'met'],
      })),
    }))
  if (groups.length === 0) return null
  return { title: 'Limits', note: '', columns: ['Measured', ''], words: true, groups }
}

/** @param {Shown[]} runs @returns {Table} */
export function systemTable(runs) {
  const names = [...new Set(runs.flatMap(({ result }) => Object.keys(result.machine.kernel)))]
  return {
    title: 'Kernel settings',
    note: 'Of the machine that started the run.',
    columns: runs.length > 1 ? runs.map(({ label }) => label) : [],
    groups: [
      {
        title: '',
        rows: [
          {
            label: 'open files',
            hint: 'per process',
            cells: runs.map(({ result }) => count(result.machine.files)),
          },
          ...names.map(name => ({
            label: name,
            cells: runs.map(({ result }) => result.machine.kernel[name] ?? UNKNOWN),
          })),
        ],
      },
    ],
  }
}
