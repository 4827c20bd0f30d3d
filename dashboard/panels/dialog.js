import { people } from '../format.js'
import { overlay } from '../overlay.js'
import { shown } from '../picture.js'
import { pad, width as widthOf } from '../terminal/line.js'

/**
 * @typedef {import('./panel.js').Line} Line
 * @typedef {import('../state.js').State} State
 */

/**
 * @param {State} state with a dialog
 * @returns {{title: string, text: string, keys: [key: string, text: string][]}}
 */
function contents(state) {
  const { dialog } = state
  switch (dialog?.kind) {
    case 'restart': {
      const view = shown(state).snapshot?.workers.find(({ index }) => index === dialog.worker)
      const clients = view?.sample?.connections.connected
      const whom =
        clients === undefined
          ? 'its clients'
          : clients === 1
            ? 'its client'
            : `its ${people(clients)} clients`
      return {
        title: `restart worker ${dialog.worker}?`,
        text: clients === 0 ? 'it has no clients' : `${whom} will have to connect again`,
        keys: [
          ['y', 'restart'],
          ['n', 'leave it'],
        ],
      }
    }
    case 'gc':
      return {
        title: 'garbage collection',
        text: 'it stops a worker for some milliseconds; which one?',
        keys: [
          ...(dialog.worker === null
            ? []
            : /** @type {[string, string][]} */ ([['w', `worker ${dialog.worker}`]])),
          ['a', 'all workers'],
          ['n', 'none'],
        ],
      }
    default:
      return {
        title: 'quit',
        text: 'what is to become of the gateway?',
        keys: [
          ['s', 'stop it'],
          ['l', 'leave it running, without dashboard'],
          ['n', 'stay here'],
        ],
      }
  }
}

/**
 * A question, in front of everything.
 *
 * @param {Line[]} lines
 * @param {State} state
 * @returns {Line[]}
 */
export function withDialog(lines, state) {
  if (state.dialog === null) return lines
  const { columns, rows } = state.size
  const { title, text, keys } = contents(state)
  /** @type {Line} */
  const choice = keys.flatMap(
    ([key, what]) =>
      /** @type {Line} */ ([
        [` ${key} `, 'key selected'],
        [` ${what}   `, 'value'],
      ]),
  )
  const inner = Math.min(columns - 4, Math.max(text.length, widthOf(choice), title.length + 4))
  const row = (/** @type {Line} */ line) =>
    /** @type {Line} */ ([['│ ', 'accent'], ...pad(line, inner, 'left', '…'), [' │', 'accent']])
  /** @type {Line[]} */
  const box = [
    [
      ['╭ ', 'accent'],
      [title, 'header'],
      [` ${'─'.repeat(Math.max(0, inner - title.length))}╮`, 'accent'],
    ],
    row([[text, 'value']]),
    row([]),
    row(choice),
    [[`╰${'─'.repeat(inner + 2)}╯`, 'accent']],
  ]
  const left = Math.max(0, Math.floor((columns - inner - 4) / 2))
  return overlay(lines, box, Math.max(0, Math.floor((rows - box.length) / 2)), left)
}
