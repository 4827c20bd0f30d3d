/**
 * One part of the screen. A panel is pure: the same state makes the same lines, and nothing is kept in between.
 *
 * @typedef {import('../../../dashboard/terminal/line.js').Line} Line
 * @typedef {import('../../../dashboard/terminal/line.js').Span} Span
 * @typedef {import('../state.js').State} State
 * @typedef {import('../../schema.js').FleetSnapshot} FleetSnapshot
 *
 * @typedef {object} Panel
 * @property {string} name
 * @property {(state: State) => boolean} visible
 * @property {(state: State) => {least: number, most: number}} rows how many it cannot do without, and how many it can use
 * @property {number} turn panels with a low one get their rows before others
 * @property {(state: State, width: number, rows: number) => Line[]} draw at most `rows` lines; wider ones are cut
 */

export {}
