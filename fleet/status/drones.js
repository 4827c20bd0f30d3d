// The drones on the main page, and the page of one drone.

import { health, healthSpan } from '../../dashboard/health.js'
import { pad, tableRow } from '../../dashboard/terminal/line.js'
import {
  BACK,
  blockColumns,
  blockTitle,
  detailPage,
  figure,
  packBlocks,
  rule,
} from '../../dashboard/view/parts.js'
import { shown, sortRows } from '../../dashboard/view/state.js'
import { choose, FRAME_ROWS, fitting, table } from '../../dashboard/view/table.js'
import {
  bytes,
  duration,
  ms,
  quantity,
  share,
  short,
  shortBytes,
  UNKNOWN,
  whole,
} from '../../src/base/format.js'
import { Distribution } from '../statistics/distribution.js'

/** @import { Line, Span } from '../../dashboard/terminal/line.js' */
/** @import { Clock, Counters, DistributionWire, DroneProcess, DroneRow, DroneSample, FleetSnapshot, Gauges } from '../schema.js' */
/** @import { Panel, State } from './state.js' */

/**
 * @typedef {State['look']} Look
 * @typedef {(name: string, value: string | Span) => Line} Figure
 * @typedef {object} Column
 * @property {string} name also of its sort order
 * @property {string} title
 * @property {string} group title above it
 * @property {number} width
 * @property {'left' | 'right'} align a left-aligned column is as wide as its longest text
 * @property {number} rank the highest are dropped first on a narrow terminal
 * @property {(row: DroneRow) => string} text
 * @property {(row: DroneRow, look: Look) => Line} cell
 * @property {(snapshot: FleetSnapshot, p99: number | null, look: Look) => Line} total p99: latency of all drones, ms
 * @property {((row: DroneRow) => number) | undefined} value to sort by
 * @typedef {{title: string, width: number, rank: number, cell: (distribution: Distribution) => string}} Statistic a
 *   column of the latencies
 */

/** Counters that must stay 0 (bad), or should (warn). @type {readonly [keyof Counters, 'warn' | 'bad'][]} */
export const ACCOUNTS = [
  ['lost', 'bad'],
  ['duplicates', 'bad'],
  ['disordered', 'bad'],
  ['damaged', 'bad'],
  ['unrecovered', 'bad'],
  ['missed', 'warn'],
  ['refused', 'bad'],
  ['unpublished', 'bad'],
  ['failed', 'warn'],
  ['ended', 'warn'],
]

const MAX_WIDTH = 22

/** @param {Clock} clock @returns {string} `+0.31±0.12`; `-` if the target does not send its time */
const clockText = ({ offset, error, against }) =>
  against === 'none' ? UNKNOWN : `${offset < 0 ? '-' : '+'}${ms(Math.abs(offset))}±${ms(error)}`

/** Drones with problems come first. @type {Record<DroneRow['state'], string>} */
const STATE_STYLES = { gone: 'bad', silent: 'bad', restarting: 'warn', launching: 'label', up: 'good' }

/**
 * @param {string} name @param {number} width @param {number} rank @param {Column['text']} text
 * @param {Partial<Pick<Column, 'title' | 'group' | 'align' | 'cell' | 'value'>> & {total?: (snapshot: FleetSnapshot,
 *   p99: number | null) => string}} [options]
 * @returns {Column}
 */
const column = (name, width, rank, text, options = {}) => {
  const { title = name, group = '', align = 'right', cell, total = () => '', value } = options
  return {
    name,
    title,
    group,
    width,
    align,
    rank,
    text,
    value,
    cell: cell ?? (row => [[text(row), 'value']]),
    total: (snapshot, p99) => [[total(snapshot, p99), 'value']],
  }
}

/** @param {keyof Gauges} name @param {number} rank @param {Column['value']} [value] */
const gauge = (name, rank, value) =>
  column(name, 7, rank, ({ sample }) => quantity(sample?.gauges[name]), {
    group: 'connections',
    total: ({ gauges }) => quantity(gauges[name]),
    value,
  })

/** @param {string} name @param {'received' | 'published'} rate @param {number} rank */
const messages = (name, rate, rank) =>
  column(name, 5, rank, ({ rates }) => short(rates[rate]), {
    group: 'msg/s',
    total: ({ rates }) => short(rates[rate]),
    value: ({ rates }) => rates[rate],
  })

/** @param {keyof Counters} name @param {number} rank @param {'warn' | 'bad'} style above 0 @returns {Column} */
const counter = (name, rank, style) => {
  const value = (/** @type {DroneRow} */ { sample }) => sample?.counters[name] ?? 0
  const line = (/** @type {number} */ count, /** @type {Look} */ { colors }) =>
    /** @type {Line} */ ([healthSpan(short(count), count > 0 ? style : 'good', colors)])
  return {
    ...column(name, 6, rank, row => short(value(row)), { value }),
    cell: (row, look) => line(value(row), look),
    total: ({ counters }, _, look) => line(counters[name], look),
  }
}

/** @param {number} cores in use @returns {string} 950% of a core; from 10 cores, 12× */
const coresText = cores => (cores < 10 ? share(cores) : `${short(cores)}×`)

/** @param {DroneRow[]} drones @param {(row: DroneRow) => number} value */
const sumOf = (drones, value) => drones.reduce((sum, row) => sum + value(row), 0)

/** In the order of the screen. @type {readonly Column[]} */
const COLUMNS = [
  column('id', 5, 0, ({ id }) => id, { title: 'drone', align: 'left', total: () => 'all', value: () => 0 }),
  column('where', 5, 6, ({ where }) => where, { align: 'left' }),
  column('handle', 6, 12, ({ handle }) => handle, { align: 'left' }),
  column('state', 5, 2, ({ state }) => state, {
    align: 'left',
    cell: ({ state }) => [[state, STATE_STYLES[state]]],
    total: ({ drones }) => `${drones.filter(({ state }) => state === 'up').length} up`,
    value: ({ state }) => Object.keys(STATE_STYLES).indexOf(state),
  }),
  column('up', 8, 10, ({ sample }) => duration(sample?.up), { title: 'since' }),
  gauge('open', 0, row => row.sample?.gauges.open ?? 0),
  gauge('wanted', 1),
  gauge('opening', 5),
  counter('failed', 3, 'warn'),
  counter('ended', 2, 'warn'),
  counter('lost', 2, 'bad'),
  messages('in', 'received', 0),
  messages('out', 'published', 1),
  column('bytesIn', 7, 9, ({ rates }) => shortBytes(rates.bytesIn), {
    title: 'bytes/s',
    group: 'in',
    total: ({ rates }) => shortBytes(rates.bytesIn),
  }),
  column('p99', 5, 0, ({ p99 }) => (p99 > 0 ? ms(p99) : '-'), {
    group: 'ms',
    total: (_, p99) => ms(p99),
    value: ({ p99 }) => p99,
  }),
  column('cpu', 5, 0, ({ cpu }) => share(cpu), {
    cell: ({ cpu, facts, sample }, { colors }) => {
      const used = cpu / Math.max(1, facts?.cores ?? sample?.machine?.cores ?? 1)
      return [healthSpan(share(cpu), health(used, 'machine'), colors)]
    },
    total: ({ drones }) => coresText(sumOf(drones, ({ cpu }) => cpu)),
    value: ({ cpu }) => cpu,
  }),
  column('each', 6, 2, row => eachText(row.bytesPerConnection), {
    group: 'memory',
    total: ({ drones }) => eachText(meanBytesPerConnection(drones)),
    value: ({ bytesPerConnection }) => bytesPerConnection,
  }),
  column('rss', 5, 8, row => shortBytes(rssOf(row)), {
    group: 'memory',
    total: ({ drones }) => shortBytes(sumOf(drones, rssOf)),
  }),
  column('clock', 11, 4, ({ sample }) => (sample === null ? '-' : clockText(sample.clock)), {
    title: 'clock, ms',
    value: row => row.sample?.clock.error ?? -1,
  }),
  column('restarts', 8, 7, ({ restarts }) => `${restarts}`, {
    total: ({ drones }) => `${sumOf(drones, ({ restarts }) => restarts)}`,
    value: ({ restarts }) => restarts,
  }),
]

/** Sort columns in the order of key `s`; numbers sort in descending order. */
export const SORTS = COLUMNS.flatMap(({ name, align, value }) =>
  value === undefined ? [] : [{ name, down: align === 'right', value }],
)

/** d2 before d10. Created once: creation is slow. */
const { compare } = new Intl.Collator('en', { numeric: true })

/** @param {State} state @returns {DroneRow[]} in the order of the table */
export const orderedDrones = state =>
  sortRows(
    shown(state).snapshot?.drones ?? [],
    SORTS,
    state.sort,
    (a, b) => compare(a.id, b.id),
    ({ sample }, column) => column !== 'state' && sample === null,
  )

/** @param {number} each bytes; 0: unknown */
const eachText = each => (each > 0 ? shortBytes(each) : '-')

/** @param {DroneRow} row @returns {number} bytes of all processes of a drone */
const rssOf = ({ sample }) => sample?.processes.reduce((sum, { rss }) => sum + rss, 0) ?? 0

/** @param {DroneRow[]} drones @returns {number} mean over drones that report it, bytes; 0: none */
function meanBytesPerConnection(drones) {
  const known = drones.filter(({ bytesPerConnection }) => bytesPerConnection > 0)
  const openOf = (/** @type {DroneRow} */ { sample }) => sample?.gauges.open ?? 0
  return sumOf(known, row => row.bytesPerConnection * openOf(row)) / Math.max(1, sumOf(known, openOf))
}

/** @param {FleetSnapshot} snapshot @param {number} width of the terminal */
function chosenColumns({ drones }, width) {
  const columns = COLUMNS.map(column => {
    if (column.align === 'right') return column
    const longest = drones.reduce((max, row) => Math.max(max, column.text(row).length), 0)
    return { ...column, width: Math.max(column.title.length, Math.min(MAX_WIDTH, longest)) }
  })
  return choose(columns, width)
}

/** Of drones without figures. @type {Partial<Record<DroneRow['state'], string>>} */
const ABOUT = { launching: 'launched, not connected yet', up: 'up, no figures yet' }

/** A row per drone, and one for all. @type {Panel} */
export const drones = {
  name: 'drones',
  visible: state => state.view === 'main' && shown(state).snapshot !== null,
  rows: state => {
    const count = shown(state).snapshot?.drones.length ?? 0
    return {
      min: FRAME_ROWS + Math.min(state.size.rows < 20 ? 1 : state.size.rows < 24 ? 2 : 4, count),
      max: FRAME_ROWS + count,
    }
  },
  priority: 5,

  draw(state, width, rows) {
    const { history, ...picture } = shown(state)
    const snapshot = /** @type {FleetSnapshot} */ (picture.snapshot)
    const { look } = state
    const { drones } = snapshot
    const up = drones.filter(({ state }) => state === 'up').length
    const p99 = history.at(-1)?.p99 ?? null
    return table(
      {
        title: `drones ${up === drones.length ? whole(up) : `${whole(up)} of ${whole(drones.length)} up`}`,
        chosen: chosenColumns(snapshot, width),
        sort: state.sort.column,
        rows: orderedDrones(state),
        isSelected: ({ id }) => id === state.selected,
        absent: (row, indent) =>
          row.sample === null || row.state === 'gone' || row.state === 'launching'
            ? absentLine(row, indent)
            : null,
        cell: ({ cell }, row) => cell(row, look),
        total: ({ total }) => total(snapshot, p99, look),
      },
      width,
      rows,
    )
  },
}

/** Last known figures of a drone without current ones. @param {DroneRow} row @param {number} indent @returns {Line} */
function absentLine({ id, state, where, handle, sample, restarts }, indent) {
  const last =
    sample === null ? '' : `, last ${quantity(sample.gauges.open)} connections, up ${duration(sample.up)}`
  const again = restarts === 0 ? '' : `, ${short(restarts)} restarts`
  return [
    ...pad([[id, 'value']], indent),
    [ABOUT[state] ?? state, STATE_STYLES[state]],
    [` (${where} ${handle})${last}${again}`, 'label'],
  ]
}

/** Everything about one drone. @type {Panel} */
export const detail = {
  name: 'detail',
  visible: state => state.view === 'detail' && shown(state).snapshot !== null,
  rows: () => ({ min: 8, max: Number.POSITIVE_INFINITY }),
  priority: 5,

  draw(state, width, rows) {
    const { snapshot, previous } = shown(state)
    const row = snapshot?.drones.find(({ id }) => id === state.selected)
    if (row === undefined) return [rule('drone', width, BACK), [[' this drone is gone', 'label']]]
    const { sample } = row
    const up = sample === null ? '' : `  up ${duration(sample.up)}`
    const title = `drone ${row.id}  ${row.state}  ${row.where} ${row.handle}${up}`
    const columns = blockColumns(width)
    const own = (/** @type {string} */ name, /** @type {string | Span} */ value) =>
      figure(name, clipped(value, name, columns.width), columns.width)
    if (sample === null) {
      const facts = [factBlock(row, own)]
      const why = /** @type {Line} */ ([[` no figures: it is ${row.state}`, STATE_STYLES[row.state]]])
      return detailPage(title, [why], packBlocks(facts, columns), state, width, rows)
    }
    const before = previous?.drones.find(({ id }) => id === row.id)?.sample ?? null
    const blocks = packBlocks(blocksOf(row, sample, before, own, state.look), columns)
    return detailPage(title, [], [...blocks, [], ...processes(sample, width)], state, width, rows)
  },
}

/** Cuts a long value, not its name. @param {string | Span} value @param {string} name @param {number} width of both */
function clipped(value, name, width) {
  const [text, style] = typeof value === 'string' ? [value, 'value'] : value
  const room = Math.max(8, width - name.length - 1)
  return /** @type {Span} */ ([text.length > room ? `${text.slice(0, room - 1)}…` : text, style])
}

/**
 * @param {DroneRow} row @param {DroneSample} sample @param {DroneSample | null} before @param {Figure} own
 * @param {Look} look @returns {Line[][]} the first line of each is its title
 */
function blocksOf(row, sample, before, own, look) {
  const { gauges, counters, clock } = sample
  const bad = new Map(ACCOUNTS)
  const counted = (/** @type {keyof typeof counters} */ name) => {
    const value = counters[name]
    const style = value > 0 ? (bad.get(name) ?? 'value') : bad.has(name) ? 'good' : 'value'
    const mark = look.colors || value === 0 || !bad.has(name) ? '' : '!'
    return own(name, [`${whole(value)}${mark}`, style])
  }
  const all = (/** @type {(keyof typeof counters)[]} */ ...names) => names.map(counted)
  return [
    [
      blockTitle('connections'),
      own('open', quantity(gauges.open)),
      own('wanted', quantity(gauges.wanted)),
      own('opening', quantity(gauges.opening)),
      own('memory of each', row.bytesPerConnection > 0 ? bytes(row.bytesPerConnection) : 'too few'),
      ...all('opened', 'reconnects', 'closed', 'failed', 'ended', 'refused', 'pings'),
    ],
    [
      blockTitle('messages'),
      own('received', `${short(row.rates.received)}/s`),
      own('published', `${short(row.rates.published)}/s`),
      own('in', `${bytes(row.rates.bytesIn)}/s`),
      own('out', `${bytes(row.rates.bytesOut)}/s`),
      own('p99 of 5 s', row.p99 > 0 ? `${ms(row.p99)} ms` : '-'),
      ...all('received', 'published', 'unpublished'),
    ],
    [
      blockTitle('checked'),
      ...all('lost', 'gaps', 'duplicates', 'disordered', 'damaged', 'missed', 'recovered', 'unrecovered'),
    ],
    [
      blockTitle('drone'),
      own('cpu', share(row.cpu)),
      own('clock, ms', clockText(clock)),
      own('restarts', [whole(row.restarts), row.restarts > 0 ? 'warn' : 'value']),
      own('process exits', [whole(sample.exits), sample.exits > 0 ? 'warn' : 'value']),
      own('settings', `revision ${whole(sample.revision)}`),
    ],
    machineBlock(sample, before, own),
    factBlock(row, own),
    [
      blockTitle('faults'),
      ...Object.entries(sample.faults)
        .sort(([, a], [, b]) => b - a)
        .map(([kind, times]) => own(kind, [quantity(times), 'warn'])),
    ],
  ]
}

/** @param {DroneSample} sample @param {DroneSample | null} before @param {Figure} own @returns {Line[]} */
function machineBlock({ machine, at }, before, own) {
  if (machine === null) return []
  const past = before?.machine ?? null
  const seconds = before === null ? 0 : (at - before.at) / 1000
  const rate = (/** @type {'cpuBusy' | 'netIn' | 'netOut'} */ name) =>
    past === null || seconds <= 0 ? null : Math.max(0, machine[name] - past[name]) / seconds
  const busy = rate('cpuBusy')
  return [
    blockTitle('machine'),
    own('cpu', busy === null ? '-' : share(busy / 1000 / machine.cores)),
    own('cores', whole(machine.cores)),
    own('memory', bytes(machine.memory)),
    own('free', bytes(machine.memoryFree)),
    own('network in', `${bytes(rate('netIn'))}/s`),
    own('network out', `${bytes(rate('netOut'))}/s`),
    own('TCP memory', bytes(machine.tcpMemory)),
    own('sockets', quantity(machine.sockets)),
    own('time-wait', quantity(machine.timeWait)),
  ]
}

/** @param {DroneRow} row @param {Figure} own @returns {Line[]} */
function factBlock({ facts }, own) {
  if (facts === null) return []
  return [
    blockTitle('facts'),
    own('host', facts.hostname),
    own('system', facts.system),
    own('node', facts.node.replace(/^v/, '')),
    own('pid', `${facts.pid}`),
    own('open files, max', quantity(facts.files)),
    own('connections, max', quantity(facts.capacity)),
  ]
}

/** @type {readonly {title: string, width: number, align?: 'left', text: (process: DroneProcess) => string}[]} */
const PROCESS_COLUMNS = [
  { title: 'process', width: 11, align: 'left', text: ({ role }) => role },
  { title: 'pid', width: 8, text: ({ pid }) => `${pid}` },
  { title: 'connections', width: 12, text: ({ connections }) => quantity(connections) },
  { title: 'cpu time', width: 9, text: ({ cpu }) => duration(cpu) },
  { title: 'rss', width: 8, text: ({ rss }) => bytes(rss) },
  { title: 'private', width: 8, text: process => bytes(process.private) },
  { title: 'base', width: 8, text: ({ base }) => bytes(base) },
  {
    title: 'each',
    width: 8,
    text: ({ connections: n, base, private: own }) => (n >= 100 ? bytes((own - base) / n) : '-'),
  },
]

/** @param {DroneSample} sample @param {number} width @returns {Line[]} */
function processes({ processes }, width) {
  let list = PROCESS_COLUMNS
  while (list.reduce((sum, { width }) => sum + width + 1, 1) > width) list = list.slice(0, -1)
  return [
    tableRow(
      list.map(({ title, align }) => [title, align ? 'header' : 'label']),
      list,
    ),
    ...processes.map(process =>
      tableRow(
        list.map(({ text, align }) => [text(process), align ? 'accent' : 'value']),
        list,
      ),
    ),
  ]
}

/** @param {Distribution} distribution @param {0.9 | 0.95} level */
function interval(distribution, level) {
  if (distribution.count < 2) return '-'
  const { low, high } = distribution.confidence(level)
  return `${ms(low)} - ${ms(high)}`
}

/** @param {number} p @param {string} title @param {number} rank @returns {Statistic} */
const percentile = (p, title, rank) => ({ title, width: 5, rank, cell: d => ms(d.percentile(p)) })

/** @type {readonly Statistic[]} */
const STATISTICS = [
  { title: 'count', width: 5, rank: 0, cell: d => short(d.count) },
  { title: 'mean', width: 5, rank: 0, cell: d => ms(d.mean) },
  { title: '95 % CI of mean', width: 16, rank: 3, cell: d => interval(d, 0.95) },
  { title: '90 % CI of mean', width: 16, rank: 5, cell: d => interval(d, 0.9) },
  { title: 'sd', width: 5, rank: 1, cell: d => ms(d.deviation) },
  { title: 'min', width: 5, rank: 2, cell: d => ms(d.min) },
  percentile(50, 'p50', 0),
  percentile(90, 'p90', 2),
  percentile(95, 'p95', 4),
  percentile(99, 'p99', 0),
  percentile(99.9, 'p99.9', 4),
  { title: 'max', width: 5, rank: 0, cell: d => ms(d.max) },
]

const NAMES = 12

/** Non-empty ones, the most important first. @param {FleetSnapshot | null} snapshot */
function known(snapshot) {
  if (snapshot === null) return []
  const { latency, latencyNow, connect, answer, probe } = snapshot
  const all = /** @type {[string, DistributionWire][]} */ ([
    ['all', latency],
    ['last 5 s', latencyNow],
    ['connecting', connect],
    ['publishing', answer],
    ['own machine', probe],
  ])
  return all.filter(([, wire]) => wire.count > 0)
}

/** Latencies as a table. @type {Panel} */
export const statistics = {
  name: 'statistics',
  visible: state => state.view === 'main' && known(shown(state).snapshot).length > 0,
  rows: state => {
    const count = known(shown(state).snapshot).length
    return {
      min: 1 + Math.min(count, state.size.rows < 20 ? 1 : state.size.rows < 30 ? 2 : count),
      max: 1 + count,
    }
  },
  priority: 4,

  draw(state, width, rows) {
    const list = fitting(STATISTICS, width - NAMES - 1)
    const needed = list.reduce((sum, column) => sum + column.width + 1, NAMES + 1)
    const gap = Math.max(1, Math.min(3, Math.floor((width - needed) / list.length) + 1))
    const line = (/** @type {[string, string]} */ name, /** @type {Line} */ cells) =>
      /** @type {Line} */ ([[' ', ''], [name[0].padEnd(NAMES), name[1]], ...tableRow(cells, list, gap)])
    return [
      line(
        ['latency, ms', 'header'],
        list.map(({ title }) => [title, 'label']),
      ),
      ...known(shown(state).snapshot)
        .slice(0, rows - 1)
        .map(([name, wire]) => {
          const distribution = Distribution.from(wire)
          return line(
            [name, 'label'],
            list.map(({ cell }) => [cell(distribution), 'value']),
          )
        }),
    ]
  },
}
