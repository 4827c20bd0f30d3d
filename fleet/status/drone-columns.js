import { health, healthSpan } from '../../dashboard/health.js'
import { choose } from '../../dashboard/view/table.js'
import { duration, ms, quantity, share, short, shortBytes, UNKNOWN } from '../../src/base/format.js'

/**
 * @typedef {import('../../dashboard/terminal/line.js').Line} Line
 * @typedef {import('../schema.js').DroneRow} DroneRow
 * @typedef {import('../schema.js').Counters} Counters
 * @typedef {import('../schema.js').FleetSnapshot} FleetSnapshot
 * @typedef {import('./state.js').Look} Look
 * @typedef {object} Column
 * @property {string} name also that of its sort, if any
 * @property {string} title
 * @property {string} group title above it
 * @property {number} width columns of the screen
 * @property {'left' | 'right'} align a left-aligned column is as wide as its longest text
 * @property {number} rank the highest are dropped first on a narrow terminal
 * @property {(row: DroneRow) => string} text
 * @property {(row: DroneRow, look: Look) => Line} cell
 * @property {(snapshot: FleetSnapshot, p99: number | null, look: Look) => Line} total `p99`: latency of all drones, ms;
 *   null: not measured
 */

/** Maximum width of a left-aligned column. */
const MAX_WIDTH = 22

/**
 * @param {import('../schema.js').Clock} clock
 * @returns {string} `+0.31±0.12`; `-` where the target does not tell its time
 */
export const clockText = ({ offset, error, against }) =>
  against === 'none' ? UNKNOWN : `${offset < 0 ? '-' : '+'}${ms(Math.abs(offset))}±${ms(error)}`

/** @type {Record<DroneRow['state'], string>} */
export const STATE_STYLES = { up: 'good', launching: 'label', restarting: 'warn', silent: 'bad', gone: 'bad' }

/**
 * @param {Pick<Column, 'name' | 'width' | 'rank' | 'text'> & Partial<Pick<Column, 'title' | 'group' | 'align'>> & {cell?:
 *   Column['cell'], total?: (snapshot: FleetSnapshot, p99: number | null) => string}} column
 * @returns {Column}
 */
const column = ({ title, group = '', align = 'right', cell, total = () => '', ...rest }) => ({
  ...rest,
  title: title ?? rest.name,
  group,
  align,
  cell: cell ?? (row => [[rest.text(row), 'value']]),
  total: (snapshot, p99) => [[total(snapshot, p99), 'value']],
})

/** @param {keyof import('../schema.js').Gauges} name @param {number} rank */
const gauge = (name, rank) =>
  column({
    name,
    group: 'connections',
    width: 7,
    rank,
    text: ({ sample }) => quantity(sample?.gauges[name]),
    total: ({ gauges }) => quantity(gauges[name]),
  })

/** @param {string} name @param {'received' | 'published'} rate @param {number} rank */
const messages = (name, rate, rank) =>
  column({
    name,
    group: 'msg/s',
    width: 5,
    rank,
    text: ({ rates }) => short(rates[rate]),
    total: ({ rates }) => short(rates[rate]),
  })

/**
 * @param {keyof Counters} name @param {number} rank
 * @param {'warn' | 'bad'} style of a value above 0
 * @returns {Column}
 */
const counter = (name, rank, style) => ({
  ...column({ name, width: 6, rank, text: ({ sample }) => short(sample?.counters[name] ?? 0) }),
  cell: ({ sample }, { colors }) => counterCell(sample?.counters[name] ?? 0, style, colors),
  total: ({ counters }, _, { colors }) => counterCell(counters[name], style, colors),
})

/** @param {number} value @param {'warn' | 'bad'} style @param {boolean} colors @returns {Line} */
const counterCell = (value, style, colors) => [healthSpan(short(value), value > 0 ? style : 'good', colors)]

/** @param {number} cores in use @returns {string} 950% of a core; from 10 cores on, 12× */
const coresText = cores => (cores < 10 ? share(cores) : `${short(cores)}×`)

/** In the order of the screen. @type {readonly Column[]} */
const COLUMNS = [
  column({
    name: 'id',
    title: 'drone',
    width: 5,
    rank: 0,
    align: 'left',
    text: ({ id }) => id,
    total: () => 'all',
  }),
  column({ name: 'where', width: 5, rank: 6, align: 'left', text: ({ where }) => where }),
  column({ name: 'handle', width: 6, rank: 12, align: 'left', text: ({ handle }) => handle }),
  column({
    name: 'state',
    width: 5,
    rank: 2,
    align: 'left',
    text: ({ state }) => state,
    cell: ({ state }) => [[state, STATE_STYLES[state]]],
    total: ({ drones }) => `${drones.filter(({ state }) => state === 'up').length} up`,
  }),
  column({ name: 'up', title: 'since', width: 8, rank: 10, text: ({ sample }) => duration(sample?.up) }),
  gauge('open', 0),
  gauge('wanted', 1),
  gauge('opening', 5),
  counter('failed', 3, 'warn'),
  counter('ended', 2, 'warn'),
  counter('lost', 2, 'bad'),
  messages('in', 'received', 0),
  messages('out', 'published', 1),
  column({
    name: 'bytesIn',
    title: 'bytes/s',
    group: 'in',
    width: 7,
    rank: 9,
    text: ({ rates }) => shortBytes(rates.bytesIn),
    total: ({ rates }) => shortBytes(rates.bytesIn),
  }),
  column({
    name: 'p99',
    group: 'ms',
    width: 5,
    rank: 0,
    text: ({ p99 }) => (p99 > 0 ? ms(p99) : '-'),
    total: (_, p99) => ms(p99),
  }),
  column({
    name: 'cpu',
    width: 5,
    rank: 0,
    text: ({ cpu }) => share(cpu),
    cell: ({ cpu, facts, sample }, { colors }) => {
      const used = cpu / Math.max(1, facts?.cores ?? sample?.machine?.cores ?? 1)
      return [healthSpan(share(cpu), health(used, 'machine'), colors)]
    },
    total: ({ drones }) => coresText(drones.reduce((sum, { cpu }) => sum + cpu, 0)),
  }),
  column({
    name: 'each',
    group: 'memory',
    width: 6,
    rank: 2,
    text: ({ bytesPerConnection }) => (bytesPerConnection > 0 ? shortBytes(bytesPerConnection) : '-'),
    total: ({ drones }) => {
      const each = meanBytesPerConnection(drones)
      return each > 0 ? shortBytes(each) : '-'
    },
  }),
  column({
    name: 'rss',
    group: 'memory',
    width: 5,
    rank: 8,
    text: row => shortBytes(rssOf(row)),
    total: ({ drones }) => shortBytes(drones.reduce((sum, row) => sum + rssOf(row), 0)),
  }),
  column({
    name: 'clock',
    title: 'clock, ms',
    width: 11,
    rank: 4,
    text: ({ sample }) => (sample === null ? '-' : clockText(sample.clock)),
  }),
  column({
    name: 'restarts',
    width: 8,
    rank: 7,
    text: ({ restarts }) => `${restarts}`,
    total: ({ drones }) => `${drones.reduce((sum, { restarts }) => sum + restarts, 0)}`,
  }),
]

/** @param {DroneRow} row @returns {number} bytes of all processes of a drone */
const rssOf = ({ sample }) => sample?.processes.reduce((sum, { rss }) => sum + rss, 0) ?? 0

/**
 * @param {DroneRow[]} drones
 * @returns {number} mean bytes per connection of the drones that report it; 0: none does
 */
function meanBytesPerConnection(drones) {
  let total = 0
  let open = 0
  for (const { bytesPerConnection, sample } of drones) {
    if (bytesPerConnection === 0 || sample === null) continue
    total += bytesPerConnection * sample.gauges.open
    open += sample.gauges.open
  }
  return open > 0 ? total / open : 0
}

/**
 * @param {FleetSnapshot} snapshot
 * @param {number} width columns of the terminal
 * @returns {import('../../dashboard/view/table.js').Chosen<Column>} the columns that fit
 */
export function chosenColumns({ drones }, width) {
  const columns = COLUMNS.map(column => {
    if (column.align === 'right') return column
    const longest = drones.reduce((most, row) => Math.max(most, column.text(row).length), 0)
    return { ...column, width: Math.max(column.title.length, Math.min(MAX_WIDTH, longest)) }
  })
  return choose(columns, width)
}
