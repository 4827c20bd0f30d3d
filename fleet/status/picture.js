import { STALE } from '../../dashboard/view/state.js'

export { shown } from '../../dashboard/view/state.js'

/** @param {import('./state.js').State} state */
export const isStale = state => state.lost !== null || state.now - state.heard > STALE
