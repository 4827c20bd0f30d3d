// The fleet's status on a terminal: snapshots of the controller -> state -> panels -> lines.
//
// It is for those who run a load test: `halley fleet status`. It stands on the dashboard's kit (view/, chart/, terminal/).
// It may import that kit, and of the fleet the schema, the settings and the statistics; the controller is handed in as a Source.
// It promises what the dashboard promises; where there is no screen it prints one page of text.

import { detectCapabilities } from '../../dashboard/terminal/capabilities.js'
import { plain } from '../../dashboard/terminal/line.js'
import { clean, toAsciiText } from '../../dashboard/terminal/text.js'
import { runView } from '../../dashboard/view/app.js'
import { page, render } from './screen.js'
import { initialState, reduce } from './state.js'

/** @typedef {import('../schema.js').FleetSnapshot} FleetSnapshot */

/**
 * Where the snapshots come from. A source MUST look for its controller again by itself when that has gone, until it is closed, and MUST
 * NOT hold the process open after `close`. It MUST NOT throw at its listeners for anything that the other side does.
 *
 * @typedef {object} Source
 * @property {(listener: (snapshot: import('../schema.js').FleetSnapshot) => void) => void} onSnapshot each second
 * @property {(listener: (reason: string) => void) => void} [onLost] the controller has gone, and why, in a line; the next snapshot says
 *   that it is back
 * @property {(name: string, params: Record<string, any>) => Promise<any>} [command] asks the controller: `set` with
 *   `{n: 1000}`, `restart` with `{ids: ['d1']}`; without it the view only shows. Rejects with a line for people
 * @property {string} [name] path or so, for people
 * @property {() => void} close
 */

/** Columns of what is no terminal. */
const PAGE = 120
/** ms for which the first snapshot is waited for where there is no screen to say so. */
const PATIENCE = 10_000

/**
 * The fleet on a terminal, until the person leaves. Where the cursor cannot be moved (a pipe, TERM=dumb) it is one picture as text.
 *
 * @param {object} parts
 * @param {Source} parts.source closed at the end
 * @param {NodeJS.ReadStream} parts.stdin
 * @param {NodeJS.WriteStream & {fd: number}} parts.stdout
 * @param {Record<string, string | undefined>} parts.env
 * @param {{ascii?: boolean, noColor?: boolean}} [parts.flags]
 * @param {number} [parts.patience] ms
 * @returns {Promise<void>}
 * @throws {Error} nothing has come, and there is no screen; or something in here went wrong, with the terminal given back
 */
export async function openView({ source, stdin, stdout, env, flags, patience = PATIENCE }) {
  const capabilities = detectCapabilities({ env, isTTY: Boolean(stdout.isTTY), flags })
  const { unicode, colors } = capabilities
  if (!capabilities.screen) {
    const snapshot = await firstSnapshot(source, patience)
    const lines = renderStatus(snapshot, { columns: stdout.columns || PAGE, unicode })
    stdout.write(`${lines.join('\n')}\n`)
    return
  }
  // Blessed is loaded where there is a screen only.
  const { Terminal } = await import('../../dashboard/terminal/terminal.js')
  const terminal = new Terminal({ input: stdin, output: stdout, capabilities })
  await show({ source, terminal, look: { unicode, colors: colors !== 0 } })
}

/**
 * @param {Source} source closed at the end
 * @param {number} patience ms
 * @returns {Promise<FleetSnapshot>}
 */
function firstSnapshot(source, patience) {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer)
      source.close()
    }
    const timer = setTimeout(() => {
      end()
      reject(new Error(`no data from the controller for ${patience / 1000} s`))
    }, patience)
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
 * One picture.
 *
 * @param {FleetSnapshot} snapshot
 * @param {object} options
 * @param {number} options.columns
 * @param {number} [options.rows] a screen of that height; without it a page without charts, as long as it needs
 * @param {boolean} [options.unicode]
 * @returns {string[]} lines, without blanks at their ends
 */
export function renderStatus(snapshot, { columns, rows, unicode = true }) {
  const look = { unicode, colors: false }
  const now = snapshot.time
  const size = { columns, rows: rows ?? 24 }
  const state = reduce(initialState({ look, size, now }), { type: 'snapshot', snapshot, now })
  return (rows === undefined ? page(state) : render(state)).map(line => {
    const text = plain(line)
    return (unicode ? clean(text) : toAsciiText(text)).trimEnd()
  })
}

/**
 * Shows a fleet until somebody leaves.
 *
 * @param {object} parts
 * @param {Source} parts.source closed at the end
 * @param {import('../../dashboard/view/app.js').Screen} parts.terminal opened, and closed whatever happens
 * @param {import('./state.js').Look} parts.look
 * @param {() => number} [parts.now] Unix ms
 * @returns {Promise<void>} rejects, with the terminal closed, when something in here goes wrong
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
    now,
  })
}
