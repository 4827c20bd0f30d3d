import { runView } from '../../dashboard/view/app.js'
import { render } from './screen.js'
import { initialState, reduce } from './state.js'

/**
 * Shows a fleet until somebody leaves.
 *
 * @param {object} parts
 * @param {import('./source.js').Source} parts.source closed at the end
 * @param {import('../../dashboard/view/app.js').Screen} parts.terminal opened, and closed whatever happens
 * @param {import('./state.js').Look} parts.look
 * @param {() => number} [parts.now] Unix ms
 * @returns {Promise<void>} rejects, with the terminal closed, when something in here goes wrong
 */
export async function runFleetView({ source, terminal, look, now = Date.now }) {
  await runView({
    terminal,
    state: initialState({
      look,
      size: terminal.size,
      now: now(),
      source: source.name,
      commands: source.command !== undefined,
    }),
    reduce,
    render,
    start(dispatch) {
      source.onLost?.(reason => dispatch({ type: 'lost', reason, now: now() }))
      source.onSnapshot(snapshot => dispatch({ type: 'snapshot', snapshot, now: now() }))
    },
    onEffect(effect, { dispatch, finish }) {
      if (effect.type === 'finish') return finish()
      const { name, params, what } = effect
      const answer = (/** @type {string | null} */ error) =>
        dispatch({ type: 'answer', what, error, now: now() })
      source.command?.(name, params).then(
        () => answer(null),
        error => answer(error.message),
      )
    },
    close: () => source.close(),
    now,
  })
}
