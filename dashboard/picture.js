import { STALE } from './view/state.js'

export { shown } from './view/state.js'

/** @param {import('./state.js').State} state */
export const isStale = state =>
  state.link.state !== 'open' || (state.live.snapshot !== null && state.now - state.heard > STALE)
