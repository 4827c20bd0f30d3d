import { clip, over } from '../../dashboard/terminal/line.js'
import { accounting } from './panels/accounting.js'
import { detail } from './panels/detail.js'
import { withDialog } from './panels/dialog.js'
import { drones } from './panels/drones.js'
import { eventLine, eventList, faultLine, faultList } from './panels/events.js'
import { footer } from './panels/footer.js'
import { header } from './panels/header.js'
import { help } from './panels/help.js'
import { pictures } from './panels/pictures.js'
import { statistics } from './panels/statistics.js'
import { status, waiting } from './panels/status.js'
import { isStale } from './picture.js'

/**
 * @typedef {import('../../dashboard/terminal/line.js').Line} Line
 * @typedef {import('./panels/panel.js').Panel} Panel
 * @typedef {import('./state.js').State} State
 */

/** Less than that is no view. */
export const SMALLEST = Object.freeze({ columns: 60, rows: 15 })

/** All panels, from the top of the screen to the bottom. @type {readonly Panel[]} */
const PANELS = [
  header,
  status,
  accounting,
  waiting,
  statistics,
  drones,
  pictures,
  detail,
  help,
  eventList,
  faultList,
  faultLine,
  eventLine,
  footer,
]

/** @type {readonly Panel[]} */
const IN_WORDS = [header, accounting, statistics, drones, faultLine, eventLine]

/** They stay as they are when the picture is old. */
const ALWAYS_BRIGHT = new Set([status, waiting, help, footer])

/**
 * @param {State} state
 * @returns {Line[]} the whole screen
 */
export function render(state) {
  const { columns, rows } = state.size
  if (columns < SMALLEST.columns || rows < SMALLEST.rows) return tooSmall(columns, rows)
  const stale = isStale(state)
  const lines = layout(state).flatMap(({ panel, rows: given }) => {
    const drawn = panel.draw(state, columns, given).slice(0, given)
    while (drawn.length < given) drawn.push([])
    return stale && !ALWAYS_BRIGHT.has(panel) ? drawn.map(dimmed) : drawn
  })
  return withDialog(lines, state)
}

/**
 * @param {Line} line
 * @returns {Line} all in one colour: it is not true any more
 */
const dimmed = line =>
  line.map(([text, style]) => [text, style.includes('selected') ? 'dim selected' : 'dim'])

/**
 * @param {State} state
 * @returns {Line[]} what is told in words, on a page that is as long as it needs
 */
export const page = state =>
  IN_WORDS.filter(panel => panel.visible(state)).flatMap(panel =>
    panel.draw(state, state.size.columns, panel.rows(state).most),
  )

/**
 * Every panel gets the rows that it cannot do without, in turn while there are any; what is left goes to those that can use it, in the
 * same order. But the pictures get their share of a high terminal before a thousand drones fill it.
 *
 * @param {State} state
 * @returns {{panel: Panel, rows: number}[]} from the top to the bottom; their rows are those of the screen
 */
export function layout(state) {
  const wanted = PANELS.filter(panel => panel.visible(state)).map(panel => ({
    panel,
    ...panel.rows(state),
    rows: 0,
  }))
  const inTurn = wanted.toSorted((a, b) => a.panel.turn - b.panel.turn)
  let left = state.size.rows
  for (const entry of inTurn) {
    if (entry.least > left) continue
    entry.rows = entry.least
    left -= entry.least
  }
  const pictured = inTurn.find(({ panel }) => panel === pictures)
  if (pictured !== undefined && pictured.rows > 0) {
    const share = Math.max(0, Math.min(left, Math.floor(state.size.rows / 3) - pictured.rows))
    pictured.rows += share
    left -= share
  }
  for (const entry of inTurn) {
    if (entry.rows === 0 && entry.least > 0) continue
    const more = Math.max(0, Math.min(left, entry.most - entry.rows))
    entry.rows += more
    left -= more
  }
  const given = wanted.filter(({ rows }) => rows > 0)
  // The footer stands at the bottom.
  const above = given.at(-2)
  if (left > 0 && above) above.rows += left
  return given
}

/**
 * @param {number} columns
 * @param {number} rows
 * @returns {Line[]}
 */
function tooSmall(columns, rows) {
  const said = [
    'terminal too small',
    `${columns}x${rows}, needs ${SMALLEST.columns}x${SMALLEST.rows}`,
    'q leaves',
  ]
  const above = Math.max(0, Math.floor((rows - said.length) / 2))
  return Array.from({ length: rows }, (_, row) => {
    const text = said[row - above] ?? ''
    const indent = ' '.repeat(Math.max(0, Math.floor((columns - text.length) / 2)))
    return clip(over([[`${indent}${text}`, '']], 'warn'), columns)
  })
}
