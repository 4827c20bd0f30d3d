/**
 * @typedef {import('../../../dashboard/terminal/line.js').Line} Line
 * @typedef {import('../../../dashboard/terminal/line.js').Span} Span
 * @typedef {import('../state.js').State} State
 * @typedef {import('../../../dashboard/view/screen.js').Panel<State>} Panel
 * @typedef {import('../../schema.js').FleetSnapshot} FleetSnapshot
 */

export {}
