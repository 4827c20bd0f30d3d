import { charts } from './panels/charts.js'
import { detail } from './panels/detail.js'
import { withDialog } from './panels/dialog.js'
import { eventLine, eventList } from './panels/events.js'
import { csv, footer } from './panels/footer.js'
import { header } from './panels/header.js'
import { help } from './panels/help.js'
import { log } from './panels/log.js'
import { status, waiting } from './panels/status.js'
import { workers } from './panels/workers.js'
import { isStale } from './picture.js'
import { clip } from './terminal/line.js'

/**
 * @typedef {import('./terminal/line.js').Line} Line
 * @typedef {import('./panels/panel.js').Panel} Panel
 * @typedef {import('./state.js').State} State
 */

/** Less than that is no dashboard. */
export const SMALLEST = Object.freeze({ columns: 60, rows: 15 })

/** All panels, from the top of the screen to the bottom. @type {readonly Panel[]} */
const PANELS = [
  header,
  status,
  waiting,
  workers,
  charts,
  detail,
  help,
  eventList,
  log,
  eventLine,
  csv,
  footer,
]

/** @type {readonly Panel[]} */
const IN_WORDS = [header, workers, eventLine, csv]

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
  /** @type {Line[]} */
  const lines = []
  for (const { panel, rows: given } of layout(state)) {
    const drawn = panel.draw(state, columns, given).slice(0, given)
    const dimmed = stale && !ALWAYS_BRIGHT.has(panel)
    for (let row = 0; row < given; row++) {
      const line = drawn[row] ?? []
      lines.push(
        dimmed
          ? line.map(([text, style]) => [text, /\bselected\b/.test(style) ? 'dim selected' : 'dim'])
          : line,
      )
    }
  }
  return withDialog(lines, state)
}

/**
 * @param {State} state
 * @returns {Line[]} what is told in words, on a page that is as long as it needs
 */
export const page = state =>
  IN_WORDS.filter(panel => panel.visible(state)).flatMap(panel =>
    panel.draw(state, state.size.columns, panel.rows(state).most),
  )

/**
 * Every panel gets the rows that it cannot do without, in turn while there are any; what is left goes to those that can use
 * it, in the same order. What nobody can use stays empty above the footer.
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
  for (const entry of inTurn) {
    if (entry.rows === 0) continue
    const more = Math.min(left, entry.most - entry.rows)
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
    'q quits',
  ]
  const above = Math.max(0, Math.floor((rows - said.length) / 2))
  return Array.from({ length: rows }, (_, row) => {
    const text = said[row - above] ?? ''
    return clip(
      [
        [' '.repeat(Math.max(0, Math.floor((columns - text.length) / 2))), ''],
        [text, 'warn'],
      ],
      columns,
    )
  })
}
