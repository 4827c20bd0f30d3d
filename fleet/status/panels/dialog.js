import { people, whole } from '../../../dashboard/format.js'
import { withQuestion } from '../../../dashboard/view/dialog.js'
import { shown } from '../picture.js'

/**
 * @typedef {import('./panel.js').Line} Line
 * @typedef {import('./panel.js').State} State
 */

/**
 * @param {State} state
 * @param {NonNullable<State['dialog']>} dialog
 * @returns {import('../../../dashboard/view/dialog.js').Question}
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
 * @param {Line[]} lines
 * @param {State} state
 * @returns {Line[]} with the question in front of them, if there is one
 */
export const withDialog = (lines, state) =>
  state.dialog === null ? lines : withQuestion(lines, state.size, contents(state, state.dialog))
