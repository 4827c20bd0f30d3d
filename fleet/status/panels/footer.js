import { footerOf, withQuestion } from '../../../dashboard/view/panels.js'
import { shown } from '../../../dashboard/view/state.js'
import { quantity, whole } from '../../../src/base/format.js'

/**
 * @typedef {import('../../../dashboard/terminal/line.js').Line} Line
 * @typedef {import('../state.js').State} State
 */

/** @typedef {[key: string, text: string]} Key */

/** @param {State} state @returns {Key[]} the most important first */
function keysOf(state) {
  const { view, frozen, sort, commands } = state
  const ifWritable = (/** @type {Key[]} */ ...keys) => (commands ? keys : [])
  /** @type {Key} */
  const quit = ['q', 'quit, load continues']
  /** @type {Key} */
  const back = ['esc', 'back']
  /** @type {Key} */
  const pause = ['p', frozen === null ? 'pause' : 'go on']
  switch (view) {
    case 'help':
    case 'events':
    case 'faults':
      return [quit, back, ['↑↓', 'scroll']]
    case 'detail':
      return [quit, back, ['↑↓', 'other drone'], ...ifWritable(['r', 'restart']), pause]
    case 'main':
      if (shown(state).snapshot === null)
        return [
          ['q', 'leave'],
          ['h', 'help'],
        ]
      return [
        quit,
        ['h', 'help'],
        ['↑↓', 'select'],
        ['enter', 'detail'],
        ['c', 'chart'],
        ['s', `by ${sort.column}${sort.down ? '▼' : '▲'}`],
        ...ifWritable(['n', 'number']),
        pause,
        ['e', 'events'],
        ['f', 'faults'],
        ['t', 'last 5 s'],
        ...ifWritable(['+-', 'more, fewer'], ['r', 'restart']),
      ]
  }
}

export const footer = footerOf(keysOf)

/**
 * @param {State} state @param {NonNullable<State['dialog']>} dialog
 * @returns {import('../../../dashboard/view/panels.js').Question}
 */
function questionOf(state, dialog) {
  const { snapshot } = shown(state)
  if (dialog.kind === 'restart') {
    const open = snapshot?.drones.find(({ id }) => id === dialog.id)?.sample?.gauges.open ?? 0
    const whose = open === 1 ? 'its connection is' : `its ${quantity(open)} connections are`
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
 * @param {Line[]} lines @param {State} state
 * @returns {Line[]} with the question in front of them, if there is one
 */
export const withDialog = (lines, state) =>
  state.dialog === null ? lines : withQuestion(lines, state.size, questionOf(state, state.dialog))
