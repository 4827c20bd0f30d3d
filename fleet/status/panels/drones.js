import { count, duration, people, whole } from '../../../dashboard/format.js'
import { clip, columns, over, pad } from '../../../dashboard/terminal/line.js'
import { chosenColumns, STATE_STYLES } from '../drone-columns.js'
import { orderedDrones } from '../order.js'
import { shown } from '../picture.js'

/**
 * @typedef {import('./panel.js').Line} Line
 * @typedef {import('./panel.js').State} State
 * @typedef {import('./panel.js').FleetSnapshot} FleetSnapshot
 * @typedef {import('../../schema.js').DroneRow} DroneRow
 * @typedef {import('../drone-columns.js').Chosen} Chosen
 */

/** Of drones without figures. @type {Partial<Record<DroneRow['state'], string>>} */
const ABOUT = {
  launching: 'launched, has not called yet',
  up: 'up, its first figures come',
}

/** Rows around the drones' own: the groups, the titles, the totals. */
const AROUND = 3

/**
 * A row for each drone, and one for all.
 * @type {import('./panel.js').Panel}
 */
export const drones = {
  name: 'drones',
  visible: state => state.view === 'main' && shown(state).snapshot !== null,
  rows: state => {
    const count = shown(state).snapshot?.drones.length ?? 0
    return {
      least: AROUND + Math.min(state.size.rows < 20 ? 1 : state.size.rows < 24 ? 2 : 4, count),
      most: AROUND + count,
    }
  },
  turn: 5,

  draw(state, width, rows) {
    const { snapshot, history } = shown(state)
    if (snapshot === null) return []
    const chosen = chosenColumns(snapshot, width)
    const ordered = orderedDrones(state)
    const room = Math.max(1, rows - AROUND)
    const from = firstRow(ordered, state.selected, room)
    const seen = ordered.slice(from, from + room)
    const part = ordered.length > room ? `, ${whole(from + 1)} to ${whole(from + seen.length)}` : ''
    return [
      groupLine(snapshot, chosen, width, part),
      titleLine(state, chosen),
      ...seen.map(row => droneLine(state, chosen, row, width)),
      totalLine(snapshot, chosen, history.at(-1)?.p99 ?? null, state.look),
    ]
  },
}

/**
 * @param {DroneRow[]} ordered
 * @param {string | null} selected
 * @param {number} room rows
 * @returns {number} of the first drone that is seen: the selected one always is, in the middle if it can
 */
function firstRow(ordered, selected, room) {
  const at = ordered.findIndex(({ id }) => id === selected)
  return Math.max(0, Math.min(ordered.length - room, at - Math.floor(room / 2)))
}

/**
 * @param {FleetSnapshot} snapshot
 * @param {Chosen} chosen
 * @param {number} width
 * @param {string} part which of them are seen
 * @returns {Line} a line across, with the names of groups of columns above these
 */
function groupLine({ drones }, { list, gap }, width, part) {
  const up = drones.filter(({ state }) => state === 'up').length
  const title = `drones ${up === drones.length ? whole(up) : `${whole(up)} of ${whole(drones.length)} up`}${part}`
  /** @type {Line} */
  const line = [
    ['─ ', 'border'],
    [title, 'header'],
    [' ', ''],
  ]
  let at = title.length + 3
  let column = 1
  for (let first = 0; first < list.length; ) {
    let last = first
    let span = list[first].width
    while (last + 1 < list.length && list[last + 1].group === list[first].group)
      span += gap + list[++last].width
    const { group } = list[first]
    const start = column + span - group.length - 2
    if (group !== '' && start > at) {
      line.push(['─'.repeat(start - at), 'border'], [` ${group} `, 'label'])
      at = start + group.length + 2
    }
    column += span + gap
    first = last + 1
  }
  if (at < width) line.push(['─'.repeat(width - at), 'border'])
  return line
}

/**
 * @param {State} state
 * @param {Chosen} chosen
 * @returns {Line}
 */
function titleLine({ sort }, { list, layout, gap }) {
  const cells = list.map(
    ({ name, title }) => /** @type {Line} */ ([[title, name === sort.column ? 'key' : 'label']]),
  )
  return [[' ', ''], ...columns(cells, layout, gap)]
}

/**
 * @param {State} state
 * @param {Chosen} chosen
 * @param {DroneRow} row
 * @param {number} width
 * @returns {Line}
 */
function droneLine(state, { list, layout, gap }, row, width) {
  const selected = row.id === state.selected
  const line =
    row.sample === null || row.state === 'gone' || row.state === 'launching'
      ? clip(absentLine(row, layout[0].width + gap), width - 1, '…')
      : columns(
          list.map(({ cell }) => cell(row, state.look)),
          layout,
          gap,
        )
  return selected ? over(pad([['▸', ''], ...line], width), 'selected') : [[' ', ''], ...line]
}

/**
 * @param {DroneRow} row
 * @param {number} indent
 * @returns {Line} a drone that says nothing: what is known of it
 */
function absentLine({ id, state, where, handle, sample, restarts }, indent) {
  const last =
    sample === null ? '' : `, last ${people(sample.gauges.open)} connections, up ${duration(sample.up)}`
  const again = restarts === 0 ? '' : `, ${count(restarts)} restarts`
  const what = ABOUT[state] ?? state
  return [
    ...pad([[id, 'value']], indent),
    [what, STATE_STYLES[state]],
    [` (${where} ${handle})${last}${again}`, 'label'],
  ]
}

/**
 * @param {FleetSnapshot} snapshot
 * @param {Chosen} chosen
 * @param {number | null} p99
 * @param {State['look']} look
 * @returns {Line}
 */
function totalLine(snapshot, { list, layout, gap }, p99, look) {
  const cells = list.map(({ total }) => {
    const cell = total(snapshot, p99, look)
    return typeof cell === 'string' ? /** @type {Line} */ ([[cell, 'value']]) : cell
  })
  return over([[' ', ''], ...columns(cells, layout, gap)], 'header')
}
