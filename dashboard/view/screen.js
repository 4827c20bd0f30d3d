// The screen of panels shared by the dashboard and `halley fleet status`. May import chart.js, format.js and
// terminal/line.js of the dashboard; independent of gateway and fleet. Guarantees: equal states give equal lines; a
// panel gets its minimum rows or none; at most four frames a second; every exit closes the terminal.

import { clip } from '../terminal/line.js'
import { centred } from './parts.js'

/** @import { Line } from '../terminal/line.js' */

/**
 * One part of the screen. A panel is pure: equal states give equal lines.
 * @template State
 * @typedef {object} Panel
 * @property {string} name
 * @property {(state: State) => boolean} visible
 * @property {(state: State) => {min: number, max: number, share?: number}} rows min: omitted with fewer; max:
 *   as many as it can use; share: assigned before others exceed their minimum
 * @property {number} priority panels with a low one get rows first
 * @property {(state: State, width: number, rows: number) => Line[]} draw at most `rows` lines; wider ones are cut
 */

/**
 * @template State
 * @typedef {object} Parts
 * @property {readonly Panel<State>[]} panels from top to bottom; the last is the footer
 * @property {readonly Panel<State>[]} textPanels panels of a page of text (`--once`)
 * @property {readonly Panel<State>[]} undimmed not dimmed if the picture is stale
 * @property {(state: State) => boolean} isStale
 * @property {(lines: Line[], state: State) => Line[]} withDialog
 */

export const MIN_SIZE = Object.freeze({ columns: 60, rows: 15 })

/** @template {{size: {columns: number, rows: number}}} State @param {Parts<State>} parts */
export function screenOf({ panels, textPanels, undimmed, isStale, withDialog }) {
  /**
   * By priority, every panel gets its minimum rows if available, then its share; then the rest goes to panels that can
   * use it, in the same order. Unused rows stay empty above the footer.
   * @param {State} state
   */
  function layout(state) {
    const wanted = panels
      .filter(panel => panel.visible(state))
      .map(panel => ({ panel, share: 0, ...panel.rows(state), rows: 0 }))
    const inTurn = wanted.toSorted((a, b) => a.panel.priority - b.panel.priority)
    let left = state.size.rows
    const give = (/** @type {typeof wanted[number]} */ entry, /** @type {number} */ rows) => {
      const more = Math.max(0, Math.min(left, rows - entry.rows))
      entry.rows += more
      left -= more
    }
    for (const entry of inTurn) if (entry.min <= left) give(entry, entry.min)
    const present = inTurn.filter(({ rows, min }) => rows > 0 || min === 0)
    for (const entry of present) give(entry, Math.min(entry.share, entry.max))
    for (const entry of present) give(entry, entry.max)
    const given = wanted.filter(({ rows }) => rows > 0)
    const above = given.at(-2)
    if (left > 0 && above) above.rows += left
    return given
  }

  return {
    layout,

    /** @param {State} state @returns {Line[]} */
    render(state) {
      const { columns, rows } = state.size
      if (columns < MIN_SIZE.columns || rows < MIN_SIZE.rows) return tooSmall(columns, rows)
      const stale = isStale(state)
      const lines = layout(state).flatMap(({ panel, rows: given }) => {
        const drawn = panel.draw(state, columns, given).slice(0, given)
        while (drawn.length < given) drawn.push([])
        return stale && !undimmed.includes(panel) ? drawn.map(dimmed) : drawn
      })
      return withDialog(lines, state)
    },

    /** The panels as text, of any length. @param {State} state @returns {Line[]} */
    page: state =>
      textPanels
        .filter(panel => panel.visible(state))
        .flatMap(panel => panel.draw(state, state.size.columns, panel.rows(state).max)),
  }
}

/** One colour, because the picture is stale. @param {Line} line @returns {Line} */
const dimmed = line =>
  line.map(([text, style]) => [text, style.includes('selected') ? 'dim selected' : 'dim'])

/** @param {number} columns @param {number} rows @returns {Line[]} */
function tooSmall(columns, rows) {
  const texts = [
    'terminal too small',
    `${columns}x${rows}, minimum ${MIN_SIZE.columns}x${MIN_SIZE.rows}`,
    'press q to quit',
  ]
  const lines = centred(
    texts.map(text => [text, 'warn']),
    columns,
    rows,
  )
  return Array.from({ length: rows }, (_, row) => clip(lines[row] ?? [], columns))
}
