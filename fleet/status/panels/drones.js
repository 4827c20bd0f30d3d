import { health, healthSpan } from '../../../dashboard/health.js'
import { pad } from '../../../dashboard/terminal/line.js'
import { shown } from '../../../dashboard/view/state.js'
import { choose, FRAME_ROWS, table } from '../../../dashboard/view/table.js'
import { duration, ms, quantity, share, short, shortBytes, UNKNOWN, whole } from '../../../src/base/format.js'

import { orderedDrones } from '../picture.js'

/**
 * @typedef {import('../../../dashboard/terminal/line.js').Line} Line
 * @typedef {import('../../schema.js').DroneRow} DroneRow
 * @typedef {import('../../schema.js').Counters} Counters
 * @typedef {import('../../schema.js').FleetSnapshot} FleetSnapshot
 * @typedef {import('../state.js').Look} Look
 * @typedef {object} Column
 * @property {string} name also that of its sort, if any
 * @property {string} title
 * @property {string} group title above it
 * @property {number} width columns of the screen
 * @property {'left' | 'right'} align a left-aligned column is as wide as its longest text
 * @property {number} rank the highest are dropped first on a narrow terminal
 * @property {(row: DroneRow) => string} text
 * @property {(row: DroneRow, look: Look) => Line} cell
 * @property {(snapshot: FleetSnapshot, p99: number | null, look: Look) => Line} total p99: latency of all drones, ms;
 *   null: not measured
 */

/** Maximum width of a left-aligned column. */
const MAX_WIDTH = 22

/**
 * @param {import('../../schema.js').Clock} clock
 * @returns {string} `+0.31±0.12`; `-` where the target does not tell its time
 */
export const clockText = ({ offset, error, against }) =>
  against === 'none' ? UNKNOWN : `${offset < 0 ? '-' : '+'}${ms(Math.abs(offset))}±${ms(error)}`

/** @type {Record<DroneRow['state'], string>} */
export const STATE_STYLES = { up: 'good', launching: 'label', restarting: 'warn', silent: 'bad', gone: 'bad' }

/**
 * @param {string} name @param {number} width @param {number} rank @param {Column['text']} text
 * @param {Partial<Pick<Column, 'title' | 'group' | 'align' | 'cell'>> & {total?: (snapshot: FleetSnapshot, p99: number |
 *   null) => string}} [options]
 * @returns {Column}
 */
const column = (name, width, rank, text, options = {}) => {
  const { title = name, group = '', align = 'right', cell, total = () => '' } = options
  return {
    name,
    title,
    group,
    width,
    align,
    rank,
    text,
    cell: cell ?? (row => [[text(row), 'value']]),
    total: (snapshot, p99) => [[total(snapshot, p99), 'value']],
  }
}

/** @param {keyof import('../../schema.js').Gauges} name @param {number} rank */
const gauge = (name, rank) =>
  column(name, 7, rank, ({ sample }) => quantity(sample?.gauges[name]), {
    group: 'connections',
    total: ({ gauges }) => quantity(gauges[name]),
  })

/** @param {string} name @param {'received' | 'published'} rate @param {number} rank */
const messages = (name, rate, rank) =>
  column(name, 5, rank, ({ rates }) => short(rates[rate]), {
    group: 'msg/s',
    total: ({ rates }) => short(rates[rate]),
  })

/**
 * @param {keyof Counters} name @param {number} rank
 * @param {'warn' | 'bad'} style of a value above 0
 * @returns {Column}
 */
const counter = (name, rank, style) => ({
  ...column(name, 6, rank, ({ sample }) => short(sample?.counters[name] ?? 0)),
  cell: ({ sample }, { colors }) => counterCell(sample?.counters[name] ?? 0, style, colors),
  total: ({ counters }, _, { colors }) => counterCell(counters[name], style, colors),
})

/** @param {number} value @param {'warn' | 'bad'} style @param {boolean} colors @returns {Line} */
const counterCell = (value, style, colors) => [healthSpan(short(value), value > 0 ? style : 'good', colors)]

/** @param {number} cores in use @returns {string} 950% of a core; from 10 cores on, 12× */
const coresText = cores => (cores < 10 ? share(cores) : `${short(cores)}×`)

/** @param {DroneRow[]} drones @param {(row: DroneRow) => number} value */
const sumOf = (drones, value) => drones.reduce((sum, row) => sum + value(row), 0)

/** In the order of the screen. @type {readonly Column[]} */
const COLUMNS = [
  column('id', 5, 0, ({ id }) => id, { title: 'drone', align: 'left', total: () => 'all' }),
  column('where', 5, 6, ({ where }) => where, { align: 'left' }),
  column('handle', 6, 12, ({ handle }) => handle, { align: 'left' }),
  column('state', 5, 2, ({ state }) => state, {
    align: 'left',
    cell: ({ state }) => [[state, STATE_STYLES[state]]],
    total: ({ drones }) => `${drones.filter(({ state }) => state === 'up').length} up`,
  }),
  column('up', 8, 10, ({ sample }) => duration(sample?.up), { title: 'since' }),
  gauge('open', 0),
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
  }),
  column('cpu', 5, 0, ({ cpu }) => share(cpu), {
    cell: ({ cpu, facts, sample }, { colors }) => {
      const used = cpu / Math.max(1, facts?.cores ?? sample?.machine?.cores ?? 1)
      return [healthSpan(share(cpu), health(used, 'machine'), colors)]
    },
    total: ({ drones }) => coresText(sumOf(drones, ({ cpu }) => cpu)),
  }),
  column('each', 6, 2, row => eachText(row.bytesPerConnection), {
    group: 'memory',
    total: ({ drones }) => eachText(meanBytesPerConnection(drones)),
  }),
  column('rss', 5, 8, row => shortBytes(rssOf(row)), {
    group: 'memory',
    total: ({ drones }) => shortBytes(sumOf(drones, rssOf)),
  }),
  column('clock', 11, 4, ({ sample }) => (sample === null ? '-' : clockText(sample.clock)), {
    title: 'clock, ms',
  }),
  column('restarts', 8, 7, ({ restarts }) => `${restarts}`, {
    total: ({ drones }) => `${sumOf(drones, ({ restarts }) => restarts)}`,
  }),
]

/** @param {number} each bytes; 0: unknown */
const eachText = each => (each > 0 ? shortBytes(each) : '-')

/** @param {DroneRow} row @returns {number} bytes of all processes of a drone */
const rssOf = ({ sample }) => sample?.processes.reduce((sum, { rss }) => sum + rss, 0) ?? 0

/**
 * @param {DroneRow[]} drones
 * @returns {number} mean bytes per connection of the drones that report it; 0: none does
 */
function meanBytesPerConnection(drones) {
  const known = drones.filter(({ bytesPerConnection }) => bytesPerConnection > 0)
  const openOf = (/** @type {DroneRow} */ { sample }) => sample?.gauges.open ?? 0
  return sumOf(known, row => row.bytesPerConnection * openOf(row)) / Math.max(1, sumOf(known, openOf))
}

/**
 * @param {FleetSnapshot} snapshot
 * @param {number} width columns of the terminal
 * @returns {import('../../../dashboard/view/table.js').Chosen<Column>} the columns that fit
 */
function chosenColumns({ drones }, width) {
  const columns = COLUMNS.map(column => {
    if (column.align === 'right') return column
    const longest = drones.reduce((most, row) => Math.max(most, column.text(row).length), 0)
    return { ...column, width: Math.max(column.title.length, Math.min(MAX_WIDTH, longest)) }
  })
  return choose(columns, width)
}

/** Of drones without figures. @type {Partial<Record<DroneRow['state'], string>>} */
const ABOUT = { launching: 'launched, not connected yet', up: 'up, no figures yet' }

/** A row per drone, and one for all. @type {import('../state.js').Panel} */
export const drones = {
  name: 'drones',
  visible: state => state.view === 'main' && shown(state).snapshot !== null,
  rows: state => {
    const count = shown(state).snapshot?.drones.length ?? 0
    return {
      least: FRAME_ROWS + Math.min(state.size.rows < 20 ? 1 : state.size.rows < 24 ? 2 : 4, count),
      most: FRAME_ROWS + count,
    }
  },
  priority: 5,

  draw(state, width, rows) {
    const { snapshot, history } = shown(state)
    if (snapshot === null) return []
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

/**
 * @param {DroneRow} row @param {number} indent
 * @returns {Line} a drone without current figures: the last known ones
 */
function absentLine({ id, state, where, handle, sample, restarts }, indent) {
  const last =
    sample === null ? '' : `, last ${quantity(sample.gauges.open)} connections, up ${duration(sample.up)}`
  const again = restarts === 0 ? '' : `, ${short(restarts)} restarts`
  const what = ABOUT[state] ?? state
  return [
    ...pad([[id, 'value']], indent),
    [what, STATE_STYLES[state]],
    [` (${where} ${handle})${last}${again}`, 'label'],
  ]
}
