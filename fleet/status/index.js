// `halley fleet status` on a terminal: snapshots of the controller -> state.js -> screen.js -> lines.
//
// It may import the dashboard's view/, chart/ and terminal/, and the fleet's schema, settings and statistics; the
// controller is passed in as a Source. Like the dashboard it always restores the terminal.

import { plain } from '../../dashboard/terminal/line.js'
import { clean, toAsciiText } from '../../dashboard/terminal/text.js'
import { runView } from '../../dashboard/view/run-view.js'
import { page, render } from './screen.js'
import { initialState, reduce } from './state.js'

/** @import { FleetSnapshot } from '../schema.js' */

/**
 * The source of the snapshots. An implementation MUST reconnect to the controller until it is closed, MUST NOT keep
 * the process alive after `close`, and MUST NOT throw on any input.
 * @typedef {{name: string, start: (listener: (event: SourceEvent) => void) => void, close: () => void, command?: (name:
 *   string, params: Record<string, any>) => Promise<any>}} Source `name`: path, as shown; `command`: `set` with `{n:
 *   1000}`, `restart` with `{ids: ['d1']}`; without it the view is read-only
 * @typedef {{type: 'snapshot', snapshot: FleetSnapshot} | {type: 'lost', reason: string}} SourceEvent a snapshot each
 *   second; lost: no controller, with a one-line reason
 */

/**
 * Shows the fleet on a terminal until the user quits. After a bug in the view, it restores the terminal.
 * @param {{source: Source, stdin: NodeJS.ReadStream, stdout: NodeJS.WriteStream & {fd: number}, capabilities:
 *   import('../../dashboard/terminal/capabilities.js').Capabilities}} parts `source`: closed at the end
 */
export async function openView({ source, stdin, stdout, capabilities }) {
  // Loads blessed only for a screen.
  const { Terminal } = await import('../../dashboard/terminal/terminal.js')
  const terminal = new Terminal({ input: stdin, output: stdout, capabilities })
  await runView({
    terminal,
    state: initialState({
      look: { unicode: capabilities.unicode, colors: capabilities.colors !== 0 },
      size: terminal.size,
      now: Date.now(),
      source: source.name,
      commands: source.command !== undefined,
    }),
    reduce,
    render,
    start: dispatch => source.start(event => dispatch({ ...event, now: Date.now() })),
    onEffect(effect, { dispatch, finish }) {
      if (effect.type === 'finish') return finish()
      const { name, params, what } = effect
      const answer = (/** @type {string | null} */ error) =>
        dispatch({ type: 'answer', what, error, now: Date.now() })
      source.command?.(name, params).then(
        () => answer(null),
        error => answer(error.message),
      )
    },
    close: () => source.close(),
  })
}

/**
 * A snapshot as a page of text of any length, without charts.
 * @param {FleetSnapshot} snapshot @param {{columns: number, unicode?: boolean}} options
 */
export function renderStatus(snapshot, { columns, unicode = true }) {
  const now = snapshot.time
  const state = initialState({ look: { unicode, colors: false }, size: { columns, rows: 24 }, now })
  return page(reduce(state, { type: 'snapshot', snapshot, now })).map(line =>
    (unicode ? clean : toAsciiText)(plain(line)).trimEnd(),
  )
}
