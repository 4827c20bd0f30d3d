import { detectCapabilities } from '../../dashboard/terminal/capabilities.js'
import { plain } from '../../dashboard/terminal/line.js'
import { clean, toAsciiText } from '../../dashboard/terminal/text.js'
import { runFleetView } from './app.js'
import { page, render } from './screen.js'
import { initialState, reduce } from './state.js'

/**
 * @typedef {import('../schema.js').FleetSnapshot} FleetSnapshot
 * @typedef {import('./source.js').Source} Source
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
  await runFleetView({ source, terminal, look: { unicode, colors: colors !== 0 } })
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
      reject(new Error(`nothing has come from the controller for ${patience / 1000} s`))
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
