import { tableRow } from '../../../dashboard/terminal/line.js'
import { shown } from '../../../dashboard/view/state.js'
import { fitting } from '../../../dashboard/view/table.js'
import { ms, short } from '../../../src/base/format.js'
import { Distribution } from '../../statistics/distribution.js'

/**
 * @typedef {import('../../../dashboard/terminal/line.js').Line} Line
 * @typedef {import('../../schema.js').FleetSnapshot} FleetSnapshot
 * @typedef {import('../../schema.js').DistributionWire} DistributionWire
 * @typedef {object} Column
 * @property {string} title
 * @property {number} width
 * @property {number} rank those with a high one go first when the terminal is narrow
 * @property {(distribution: Distribution) => string} cell
 */

/** @param {Distribution} distribution @param {0.9 | 0.95} level */
function interval(distribution, level) {
  if (distribution.count < 2) return '-'
  const { low, high } = distribution.confidence(level)
  return `${ms(low)} - ${ms(high)}`
}

/** @param {number} p @param {string} title @param {number} rank @returns {Column} */
const percentile = (p, title, rank) => ({ title, width: 5, rank, cell: d => ms(d.percentile(p)) })

/** @type {readonly Column[]} */
const COLUMNS = [
  { title: 'count', width: 5, rank: 0, cell: d => short(d.count) },
  { title: 'mean', width: 5, rank: 0, cell: d => ms(d.mean) },
  { title: '95 % of the mean', width: 16, rank: 3, cell: d => interval(d, 0.95) },
  { title: '90 % of the mean', width: 16, rank: 5, cell: d => interval(d, 0.9) },
  { title: 'sd', width: 5, rank: 1, cell: d => ms(d.deviation) },
  { title: 'min', width: 5, rank: 2, cell: d => ms(d.min) },
  percentile(50, 'p50', 0),
  percentile(90, 'p90', 2),
  percentile(95, 'p95', 4),
  percentile(99, 'p99', 0),
  percentile(99.9, 'p99.9', 4),
  { title: 'max', width: 5, rank: 0, cell: d => ms(d.max) },
]

/** Columns of the names. */
const NAMES = 12

/**
 * @param {FleetSnapshot} snapshot
 * @returns {[name: string, wire: DistributionWire][]} those that hold something, the most important ones first
 */
function known({ latency, latencyNow, connect, answer, probe }) {
  const all = /** @type {[string, DistributionWire][]} */ ([
    ['all', latency],
    ['last 5 s', latencyNow],
    ['connecting', connect],
    ['publishing', answer],
    ['own machine', probe],
  ])
  return all.filter(([, wire]) => wire.count > 0)
}

/** Latencies as a table. @type {import('../state.js').Panel} */
export const statistics = {
  name: 'statistics',
  visible: state => {
    const { snapshot } = shown(state)
    return state.view === 'main' && snapshot !== null && known(snapshot).length > 0
  },
  rows: state => {
    const { snapshot } = shown(state)
    const count = snapshot === null ? 0 : known(snapshot).length
    return {
      least: 1 + Math.min(count, state.size.rows < 20 ? 1 : state.size.rows < 30 ? 2 : count),
      most: 1 + count,
    }
  },
  priority: 4,

  draw(state, width, rows) {
    const { snapshot } = shown(state)
    if (snapshot === null) return []
    const list = fitting(COLUMNS, width - NAMES - 1)
    const needed = list.reduce((sum, column) => sum + column.width + 1, NAMES + 1)
    const layout = list.map(({ width }) => ({ width, align: /** @type {const} */ ('right') }))
    const gap = Math.max(1, Math.min(3, Math.floor((width - needed) / list.length) + 1))
    const line = (/** @type {[string, string]} */ name, /** @type {Line} */ cells) =>
      /** @type {Line} */ ([[' ', ''], [name[0].padEnd(NAMES), name[1]], ...tableRow(cells, layout, gap)])
    return [
      line(
        ['latency, ms', 'header'],
        list.map(({ title }) => [title, 'label']),
      ),
      ...known(snapshot)
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
