import { pad, tableRow } from '../../../dashboard/terminal/line.js'
import { shown } from '../../../dashboard/view/state.js'
import { FRAME_ROWS, table } from '../../../dashboard/view/table.js'
import { duration, quantity, short, whole } from '../../../src/base/format.js'
import { chosenColumns, STATE_STYLES } from '../drone-columns.js'
import { orderedDrones } from '../picture.js'

/**
 * @typedef {import('../../../dashboard/terminal/line.js').Line} Line
 * @typedef {import('../../schema.js').DroneRow} DroneRow
 */

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
    const chosen = chosenColumns(snapshot, width)
    const { list, layout, gap } = chosen
    const up = drones.filter(({ state }) => state === 'up').length
    const p99 = history.at(-1)?.p99 ?? null
    return table(
      {
        title: `drones ${up === drones.length ? whole(up) : `${whole(up)} of ${whole(drones.length)} up`}`,
        chosen,
        sort: state.sort.column,
        rows: orderedDrones(state),
        isSelected: ({ id }) => id === state.selected,
        line: row =>
          row.sample === null || row.state === 'gone' || row.state === 'launching'
            ? absentLine(row, layout[0].width + gap)
            : tableRow(
                list.map(({ cell }) => cell(row, look)),
                layout,
                gap,
              ),
        total: tableRow(
          list.map(({ total }) => total(snapshot, p99, look)),
          layout,
          gap,
        ),
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
