import { duration, quantity, whole } from '../../src/base/format.js'
import { sparkline } from '../chart.js'
import { orderedWorkers, workerAt } from '../picture.js'
import { tableRow } from '../terminal/line.js'
import { shown } from '../view/state.js'
import { FRAME_ROWS, table } from '../view/table.js'
import { chosenColumns } from './worker-columns.js'

/** @import { WorkerView } from '../../src/metrics/schema.js' */
/** @import { Panel, Snapshot, State } from '../state.js' */
/** @import { Line } from '../terminal/line.js' */

/** A row per worker, and one for all. @type {Panel} */
export const workers = {
  name: 'workers',
  visible: state => state.view === 'main' && shown(state).snapshot !== null,
  rows: state => {
    const count = shown(state).snapshot?.workers.length ?? 0
    return { least: FRAME_ROWS + Math.min(1, count), most: FRAME_ROWS + count }
  },
  priority: 3,

  draw(state, width, rows) {
    const snapshot = /** @type {Snapshot} */ (shown(state).snapshot)
    const { look } = state
    const { workers, totals } = snapshot
    const { trend, ...chosen } = chosenColumns(snapshot, width, look)
    const { list, layout, gap } = chosen
    const up =
      totals.workers === workers.length ? `${workers.length}` : `${totals.workers} of ${workers.length} up`
    const overloaded = workers.filter(({ sample }) => sample?.overload).length
    return table(
      {
        title: `workers ${up}${overloaded === 0 ? '' : `, ${overloaded} overloaded`}`,
        chosen,
        sort: state.sort.column,
        rows: orderedWorkers(state),
        isSelected: ({ index }) => index === state.selected,
        line: view => {
          const { sample } = view
          if (sample === null || view.state !== 'up') return absentLine(view, layout[0].width + gap)
          return tableRow(
            list.map(({ cell }) => cell(sample, look, view)),
            layout,
            gap,
          )
        },
        total: tableRow(
          list.map(({ total }) => total(snapshot, look)),
          layout,
          gap,
        ),
        tail:
          trend === 0
            ? null
            : {
                title: 'longest delay',
                width: trend,
                line: ({ index }) => [[trendOf(state, index, trend), 'series4']],
              },
      },
      width,
      rows,
    )
  },
}

/**
 * A worker without current figures: the reason, and its last figures.
 * @param {WorkerView} view @param {number} indent columns of its number and the gap @returns {Line}
 */
function absentLine({ index, state, age, deaths, sample }, indent) {
  const died = deaths === 0 ? '' : `, ${deaths === 1 ? 'died once' : `died ${whole(deaths)} times`}`
  const last =
    sample === null ? '' : `, last ${quantity(sample.connections.connected)} clients, pid ${sample.pid}`
  const since = state === 'starting' ? '' : ` for ${duration(age)}`
  return [
    [index.toString().padStart(indent - 1), 'value'],
    [' ', ''],
    [`${state === 'silent' ? 'no data' : state}${since}`, state === 'down' ? 'bad' : 'warn'],
    [`${last}${died}`, 'label'],
  ]
}

/** Range of the sparkline, log10 of ms: 1 to 1000 ms. */
const TREND_RANGE = { min: 0, max: 3 }

/**
 * The longest event-loop delay of each of the last seconds, on a logarithmic scale.
 * @param {State} state @param {number} index @param {number} width @returns {string}
 */
function trendOf(state, index, width) {
  const values = shown(state)
    .history.slice(-width)
    .map(moment => {
      const point = workerAt(moment, index)
      return point && Math.log10(Math.max(1, point.max))
    })
  return sparkline(values, width, state.look.unicode, TREND_RANGE)
}
