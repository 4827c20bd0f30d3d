import { sparkline } from '../chart.js'
import { duration, people, whole } from '../format.js'
import { orderedWorkers } from '../order.js'
import { shown } from '../picture.js'
import { columns, over, pad } from '../terminal/line.js'
import { spread } from './parts.js'
import { chosenColumns } from './worker-columns.js'

/**
 * @typedef {import('./panel.js').Line} Line
 * @typedef {import('../state.js').State} State
 * @typedef {import('../../src/stats/schema.js').WorkerView} WorkerView
 * @typedef {import('./worker-columns.js').Chosen} Chosen
 */

/** Rows around the workers' own: the groups, the titles, the totals. */
const AROUND = 3

/**
 * A row for each worker, and one for all.
 * @type {import('./panel.js').Panel}
 */
export const workers = {
  name: 'workers',
  visible: state => state.view === 'main' && shown(state).snapshot !== null,
  rows: state => {
    const count = shown(state).snapshot?.workers.length ?? 0
    return { least: AROUND + Math.min(1, count), most: AROUND + count }
  },
  turn: 3,

  draw(state, width, rows) {
    const snapshot = /** @type {import('../state.js').Snapshot} */ (shown(state).snapshot)
    const chosen = chosenColumns(snapshot, width, state.look)
    const ordered = orderedWorkers(state)
    const room = Math.max(1, rows - AROUND)
    const from = firstRow(ordered, state.selected, room)
    const seen = ordered.slice(from, from + room)
    return [
      groupLine(state, chosen, width, ordered.length > room ? `${from + 1} to ${from + seen.length}` : ''),
      titleLine(state, chosen, width),
      ...seen.map(view => workerLine(state, chosen, view, width)),
      totalLine(state, chosen),
    ]
  },
}

/**
 * @param {WorkerView[]} ordered
 * @param {number | null} selected
 * @param {number} room rows
 * @returns {number} of the first worker that is seen: the selected one always is, in the middle if it can
 */
function firstRow(ordered, selected, room) {
  const at = ordered.findIndex(({ index }) => index === selected)
  return Math.max(0, Math.min(ordered.length - room, at - Math.floor(room / 2)))
}

/**
 * @param {State} state
 * @param {Chosen} chosen
 * @param {number} width
 * @param {string} part which of them are seen
 * @returns {Line} a line across, with the names of groups of columns above these
 */
function groupLine(state, { list, gap }, width, part) {
  const { workers, totals } = /** @type {import('../state.js').Snapshot} */ (shown(state).snapshot)
  const up =
    totals.workers === workers.length ? `${workers.length}` : `${totals.workers} of ${workers.length} up`
  const title = `workers ${up}${part === '' ? '' : `, ${part}`}`
  /** @type {Line} */
  const line = [
    ['─ ', 'border'],
    [title, 'header'],
    [' ', ''],
  ]
  let at = title.length + 3
  let column = 0
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
 * @param {number} width
 * @returns {Line}
 */
function titleLine({ sort }, { list, layout, gap, trend }, width) {
  const cells = list.map(
    ({ name, title }) => /** @type {Line} */ ([[title, name === sort.column ? 'key' : 'label']]),
  )
  const line = columns(cells, layout, gap)
  return trend === 0 ? line : spread(line, [['longest ticks', 'label']], width)
}

/**
 * @param {State} state
 * @param {Chosen} chosen
 * @param {WorkerView} view
 * @param {number} width
 * @returns {Line}
 */
function workerLine(state, { list, layout, gap, trend }, view, width) {
  const { sample } = view
  const line =
    sample !== null && view.state === 'up'
      ? columns(
          list.map(({ cell }) => cell(sample, state.look, view)),
          layout,
          gap,
        )
      : absentLine(view, list[0].width + gap)
  const table = width - (trend === 0 ? 0 : trend + gap)
  const row =
    view.index === state.selected ? over(pad([['▸', ''], ...withoutFirst(line)], table), 'selected') : line
  if (trend === 0) return row
  return [...pad(row, table + gap), [trendOf(state, view.index, trend), 'series4']]
}

/**
 * @param {WorkerView} view
 * @param {number} indent
 * @returns {Line} a worker that says nothing: why, and what is known of it
 */
function absentLine({ index, state, age, deaths, sample }, indent) {
  const died = deaths === 0 ? '' : `, ${deaths === 1 ? 'died once' : `died ${whole(deaths)} times`}`
  const last =
    sample === null ? '' : `, last ${people(sample.connections.connected)} clients, pid ${sample.pid}`
  const since = state === 'starting' ? '' : ` for ${duration(age)}`
  return [
    [index.toString().padStart(indent - 1), 'value'],
    [' ', ''],
    [`${state === 'silent' ? 'says nothing' : state}${since}`, state === 'down' ? 'bad' : 'warn'],
    [`${last}${died}`, 'label'],
  ]
}

/**
 * @param {State} state
 * @param {number} index
 * @param {number} width
 * @returns {string} the longest ticks of the last seconds, on a logarithmic scale from 1 to 1000 ms
 */
function trendOf(state, index, width) {
  const values = shown(state)
    .history.slice(-width)
    .map(moment => {
      const max = moment?.ticks[index]
      return max === undefined || Number.isNaN(max) ? null : Math.log10(Math.max(1, max))
    })
  return sparkline(values, width, state.look.unicode, { min: 0, max: 3 })
}

/**
 * @param {Line} line
 * @returns {Line} without its first character, a blank
 */
function withoutFirst([[text, style], ...rest]) {
  return text.length > 1 ? [[text.slice(1), style], ...rest] : rest
}

/**
 * @param {State} state
 * @param {Chosen} chosen
 * @returns {Line}
 */
function totalLine(state, { list, layout, gap }) {
  const snapshot = /** @type {import('../state.js').Snapshot} */ (shown(state).snapshot)
  return over(
    columns(
      list.map(({ total }) => total(snapshot, state.look)),
      layout,
      gap,
    ),
    'header',
  )
}
