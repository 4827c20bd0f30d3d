import { width as widthOf } from '../../../dashboard/terminal/line.js'
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

/**
 * The keys; those that do not fit are in the help.
 * @type {import('./panel.js').Panel}
 */
export const footer = {
  name: 'footer',
  visible: () => true,
  rows: () => ({ least: 1, most: 1 }),
  turn: 0,

  draw(state, width) {
    const [quit, ...others] = keysOf(state).map(
      ([key, text]) =>
        /** @type {Line} */ ([
          [key, 'key'],
          [` ${text}`, 'label'],
        ]),
    )
    /** @type {Line} */
    const line = [[' ', '']]
    let room = width - 2 - widthOf(quit)
    for (const item of others) {
      room -= widthOf(item) + 2
      if (room < 0) break
      line.push(...item, ['  ', ''])
    }
    return [[...line, ...quit]]
  },
}
