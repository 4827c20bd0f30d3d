// The fleet's status on a terminal: snapshots of the controller -> state -> panels -> lines.
//
// For users of load tests: `halley fleet status`. It may import the dashboard's view/, chart/ and terminal/, and the
// fleet's schema, settings and statistics; the controller is passed in as a Source. Like the dashboard it always
// restores the terminal. Where there is no screen it prints one page of text.

import { detectCapabilities } from '../../dashboard/terminal/capabilities.js'
import { plain } from '../../dashboard/terminal/line.js'
import { clean, toAsciiText } from '../../dashboard/terminal/text.js'
import { runView } from '../../dashboard/view/run-view.js'
import { page, render } from './screen.js'
import { initialState, reduce } from './state.js'

/** @typedef {import('../schema.js').FleetSnapshot} FleetSnapshot */

/**
 * The source of the snapshots. An implementation MUST reconnect to the controller until it is closed, MUST NOT keep
 * the process alive after `close`, and MUST NOT throw whatever the controller sends.
 * @typedef {object} Source
 * @property {(listener: (snapshot: FleetSnapshot) => void) => void} onSnapshot each second
 * @property {(listener: (reason: string) => void) => void} [onLost] the controller is gone; `reason` is one line. The
 *   next snapshot shows that it is back
 * @property {(name: string, params: Record<string, any>) => Promise<any>} [command] sends the controller a command:
 *   `set` with `{n: 1000}`, `restart` with `{ids: ['d1']}`; without it the view is read-only. Rejects with a line of
 *   text
 * @property {string} [name] path, as shown
 * @property {() => void} close
 */

/** Size where the output is not a terminal. */
const PAGE = { columns: 120, rows: 24 }
/** Time to wait for the first snapshot where there is no screen, ms. */
const SNAPSHOT_TIMEOUT = 10_000

/**
 * Shows the fleet on a terminal until the user quits. Without cursor addressing (a pipe, TERM=dumb) it prints one
 * page as text.
 * @param {object} parts
 * @param {Source} parts.source closed at the end
 * @param {NodeJS.ReadStream} parts.stdin @param {NodeJS.WriteStream & {fd: number}} parts.stdout
 * @param {Record<string, string | undefined>} parts.env @param {{ascii?: boolean, noColor?: boolean}} [parts.flags]
 * @param {number} [parts.timeout] ms
 * @returns {Promise<void>}
 * @throws {Error} no snapshot, and no screen; or a bug in the view, after the terminal is restored
 */
export async function openView({ source, stdin, stdout, env, flags, timeout = SNAPSHOT_TIMEOUT }) {
  const capabilities = detectCapabilities({ env, isTTY: Boolean(stdout.isTTY), flags })
  const { unicode, colors } = capabilities
  if (!capabilities.screen) {
    const snapshot = await firstSnapshot(source, timeout)
    const lines = renderStatus(snapshot, { columns: stdout.columns || PAGE.columns, unicode })
    stdout.write(`${lines.join('\n')}\n`)
    return
  }
  // Loads blessed only where there is a screen.
  const { Terminal } = await import('../../dashboard/terminal/terminal.js')
  const terminal = new Terminal({ input: stdin, output: stdout, capabilities })
  await show({ source, terminal, look: { unicode, colors: colors !== 0 } })
}

/** @param {Source} source closed at the end @param {number} timeout ms @returns {Promise<FleetSnapshot>} */
function firstSnapshot(source, timeout) {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer)
      source.close()
    }
    const timer = setTimeout(() => {
      end()
      reject(new Error(`no data from the controller for ${timeout / 1000} s`))
    }, timeout)
    source.onLost?.(reason => {
      end()
      reject(new Error(reason))
    })
    source.onSnapshot(snapshot => {
      end()
      resolve(snapshot)
    })
  })
}

/**
 * A snapshot as text.
 * @param {FleetSnapshot} snapshot @param {object} options @param {number} options.columns
 * @param {number} [options.rows] a screen of that height; without it a page without charts, as long as it needs
 * @param {boolean} [options.unicode]
 * @returns {string[]} lines without trailing blanks
 */
export function renderStatus(snapshot, { columns, rows, unicode = true }) {
  const look = { unicode, colors: false }
  const now = snapshot.time
  const size = { columns, rows: rows ?? PAGE.rows }
  const state = reduce(initialState({ look, size, now }), { type: 'snapshot', snapshot, now })
  return (rows === undefined ? page(state) : render(state)).map(line => {
    const text = plain(line)
    return (unicode ? clean(text) : toAsciiText(text)).trimEnd()
  })
}

/**
 * Shows the fleet until the user quits.
 * @param {object} parts
 * @param {Source} parts.source closed at the end
 * @param {import('../../dashboard/view/run-view.js').Screen} parts.terminal opened, and closed whatever happens
 * @param {import('./state.js').Look} parts.look
 * @param {() => number} [parts.now] Unix ms
 * @returns {Promise<void>}
 */
async function show({ source, terminal, look, now = Date.now }) {
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
  })
}
