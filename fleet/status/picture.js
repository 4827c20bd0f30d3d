/** @typedef {import('./state.js').State} State */

/** ms without a snapshot after which the picture counts as old. */
export const STALE = 3000

/**
 * @param {State} state
 * @returns {import('./state.js').Picture} what is on the screen
 */
export const shown = state => state.frozen ?? state.live

/** @param {State} state */
export const isStale = state => state.lost !== null || state.now - state.heard > STALE
