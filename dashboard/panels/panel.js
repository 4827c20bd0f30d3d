/**
 * @typedef {import('../terminal/line.js').Line} Line
 * @typedef {import('../terminal/line.js').Span} Span
 * @typedef {import('../state.js').State} State
 * @typedef {import('../view/screen.js').Panel<State>} Panel
 */

export {}
