import { footerOf } from '../../../dashboard/view/footer.js'
import { shown } from '../picture.js'

/**
 * @typedef {import('./panel.js').Line} Line
 * @typedef {import('./panel.js').State} State
 */

/**
 * @param {State} state
 * @returns {[key: string, text: string][]} the most important ones first
 */
function keysOf(state) {
  const { view, frozen, sort, commands } = state
  /** @type {[string, string][]} */
  const always = [['q', 'leave, load goes on']]
  if (shown(state).snapshot === null && view === 'main')
    return [
      ['q', 'leave'],
      ['h', 'help'],
    ]
  /** @type {[string, string]} */
  const pause = ['p', frozen === null ? 'pause' : 'go on']
  switch (view) {
    case 'help':
    case 'events':
    case 'faults':
      return [...always, ['esc', 'back'], ['↑↓', 'scroll']]
    case 'detail':
      return [
        ...always,
        ['esc', 'back'],
        ['↑↓', 'other drone'],
        ...(commands ? [/** @type {[string, string]} */ (['r', 'restart'])] : []),
        pause,
      ]
    case 'main':
      return [
        ...always,
        ['h', 'help'],
        ['↑↓', 'select'],
        ['enter', 'detail'],
        ['c', 'chart'],
        ['s', `by ${sort.column}${sort.down ? '▼' : '▲'}`],
        ...(commands ? /** @type {[string, string][]} */ ([['n', 'number']]) : []),
        pause,
        ['e', 'events'],
        ['f', 'faults'],
        ['t', 'last 5 s'],
        ...(commands
          ? /** @type {[string, string][]} */ ([
              ['+-', 'more, fewer'],
              ['r', 'restart'],
            ])
          : []),
      ]
  }
}

export const footer = footerOf(keysOf)
