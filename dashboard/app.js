import { render } from './screen.js'
import { initialState, reduce } from './state.js'
import { runView } from './view/app.js'

/**
 * Shows a gateway until somebody quits.
 *
 * @param {object} parts
 * @param {import('./source/source.js').Source} parts.source closed at the end
 * @param {import('./view/app.js').Screen} parts.terminal opened, and closed whatever happens
 * @param {{unicode: boolean, colors: boolean}} parts.look what the terminal can show
 * @param {boolean} [parts.owner] whether the gateway belongs to this terminal: quitting asks what is to become of it
 * @param {string} [parts.key] that the gateway has generated, for the help; '' if none
 * @param {() => boolean} [parts.orphaned] whether whoever has started this is gone: then it ends, too
 * @param {() => number} [parts.now] unix ms
 * @param {Pick<NodeJS.Process, 'on' | 'off'>} [parts.host] the process
 * @returns {Promise<{reason: import('./state.js').Reason, text?: string}>} `text`: why it was refused; rejects, with the terminal
 *   closed, when something in here goes wrong
 */
export async function runDashboard({
  source,
  terminal,
  look,
  owner = false,
  key = '',
  orphaned,
  now = Date.now,
  host,
}) {
  const ending = await runView({
    terminal,
    state: initialState({ look, size: terminal.size, source: source.name, now: now(), owner, key }),
    reduce,
    render,
    start: dispatch =>
      source.start(event =>
        dispatch(
          event.type === 'link'
            ? { type: 'link', state: event.state, text: event.text, now: now() }
            : { type: 'message', message: event.message, now: now() },
        ),
      ),
    onEffect(effect, { finish }) {
      if (effect.type === 'send') source.send(effect.command)
      else finish(effect)
    },
    close: () => source.close(),
    orphaned,
    now,
    host,
  })
  return ending ?? { reason: 'quit' }
}
