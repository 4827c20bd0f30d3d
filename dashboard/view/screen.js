import { clip } from '../terminal/line.js'
import { centred } from './parts.js'

/** @typedef {import('../terminal/line.js').Line} Line */

/**
 * One part of the screen. A panel is pure: the same state makes the same lines.
 *
 * @template State
 * @typedef {object} Panel
 * @property {string} name
 * @property {(state: State) => boolean} visible
 * @property {(state: State) => {least: number, most: number, share?: number}} rows `least`: it is left out with
 *   fewer; `most`: it can use; `share`: it gets before others get more than their least
 * @property {number} priority panels with a low one get their rows first
 * @property {(state: State, width: number, rows: number) => Line[]} draw at most `rows` lines; wider ones are cut
 */

/**
 * @template State
 * @typedef {object} Parts
 * @property {readonly Panel<State>[]} panels from the top of the screen to the bottom; the last one is the footer
 * @property {readonly Panel<State>[]} inWords panels of a page of text (`--once`)
 * @property {readonly Panel<State>[]} bright not dimmed when the picture is stale
 * @property {(state: State) => boolean} isStale
 * @property {(lines: Line[], state: State) => Line[]} withDialog
 */

/** Least size of a terminal. */
export const SMALLEST = Object.freeze({ columns: 60, rows: 15 })

/**
 * @template {{size: {columns: number, rows: number}}} State
 * @param {Parts<State>} parts
 */
export function screenOf({ panels, inWords, bright, isStale, withDialog }) {
  /**
   * By priority, every panel gets its least rows while there are any, then its share; then the rest goes to the
   * panels that can use it, in the same order. Unused rows stay empty above the footer.
   * @param {State} state
   * @returns {{panel: Panel<State>, rows: number}[]} from the top to the bottom; their rows are those of the screen
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
    for (const entry of inTurn) if (entry.least <= left) give(entry, entry.least)
    const present = inTurn.filter(({ rows, least }) => rows > 0 || least === 0)
    for (const entry of present) give(entry, Math.min(entry.share, entry.most))
    for (const entry of present) give(entry, entry.most)
    const given = wanted.filter(({ rows }) => rows > 0)
    const above = given.at(-2)
    if (left > 0 && above) above.rows += left
    return given
  }

  return {
    layout,

    /** @param {State} state @returns {Line[]} the whole screen */
    render(state) {
      const { columns, rows } = state.size
      if (columns < SMALLEST.columns || rows < SMALLEST.rows) return tooSmall(columns, rows)
      const stale = isStale(state)
      const lines = layout(state).flatMap(({ panel, rows: given }) => {
        const drawn = panel.draw(state, columns, given).slice(0, given)
        while (drawn.length < given) drawn.push([])
        return stale && !bright.includes(panel) ? drawn.map(dimmed) : drawn
      })
      return withDialog(lines, state)
    },

    /** @param {State} state @returns {Line[]} a page of text, as long as it needs */
    page: state =>
      inWords
        .filter(panel => panel.visible(state))
        .flatMap(panel => panel.draw(state, state.size.columns, panel.rows(state).most)),
  }
}

/** @param {Line} line @returns {Line} in one colour: it is stale */
const dimmed = line =>
  line.map(([text, style]) => [text, style.includes('selected') ? 'dim selected' : 'dim'])

/** @param {number} columns @param {number} rows @returns {Line[]} */
function tooSmall(columns, rows) {
  const said = [
    'terminal too small',
    `${columns}x${rows}, needs ${SMALLEST.columns}x${SMALLEST.rows}`,
    'q quits',
  ]
  const lines = centred(
    said.map(text => [text, 'warn']),
    columns,
    rows,
  )
  return Array.from({ length: rows }, (_, row) => clip(lines[row] ?? [], columns))
}
