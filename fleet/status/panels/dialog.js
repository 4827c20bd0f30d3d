import { people, whole } from '../../../dashboard/format.js'
import { overlay } from '../../../dashboard/overlay.js'
import { pad, width as widthOf } from '../../../dashboard/terminal/line.js'
import { shown } from '../picture.js'

/**
 * @typedef {import('./panel.js').Line} Line
 * @typedef {import('./panel.js').State} State
 */

/**
 * @param {State} state
 * @param {NonNullable<State['dialog']>} dialog
 * @returns {{title: string, text: Line, keys: [key: string, text: string][]}}
 */
function contents(state, dialog) {
  const { snapshot } = shown(state)
  if (dialog.kind === 'restart') {
    const open = snapshot?.drones.find(({ id }) => id === dialog.id)?.sample?.gauges.open ?? 0
    const whose = open === 1 ? 'its connection is' : `its ${people(open)} connections are`
    return {
      title: `restart ${dialog.id}?`,
      text: [[open === 0 ? 'it has no connections' : `${whose} closed, and opened anew`, 'value']],
      keys: [
        ['y', 'restart'],
        ['n', 'leave it'],
      ],
    }
  }
  return {
    title: 'connections of all drones',
    text: [
      [`${whole(snapshot?.settings.n)} → `, 'label'],
      [dialog.text, 'value'],
      ['▏', 'accent'],
      [dialog.text === '' ? ' 20000, 20k, 1.5m' : '', 'label'],
    ],
    keys: [
      ['enter', 'set'],
      ['esc', 'leave it'],
    ],
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
  const { title, text, keys } = contents(state, state.dialog)
  /** @type {Line} */
  const choice = keys.flatMap(
    ([key, what]) =>
      /** @type {Line} */ ([
        [` ${key} `, 'key selected'],
        [` ${what}   `, 'value'],
      ]),
  )
  const inner = Math.min(columns - 4, Math.max(widthOf(text), widthOf(choice), title.length + 4, 40))
  const row = (/** @type {Line} */ line) =>
    /** @type {Line} */ ([['│ ', 'accent'], ...pad(line, inner, 'left', '…'), [' │', 'accent']])
  /** @type {Line[]} */
  const box = [
    [
      ['╭ ', 'accent'],
      [title, 'header'],
      [` ${'─'.repeat(Math.max(0, inner - title.length))}╮`, 'accent'],
    ],
    row(text),
    row([]),
    row(choice),
    [[`╰${'─'.repeat(inner + 2)}╯`, 'accent']],
  ]
  const left = Math.max(0, Math.floor((columns - inner - 4) / 2))
  return overlay(lines, box, Math.max(0, Math.floor((rows - box.length) / 2)), left)
}
