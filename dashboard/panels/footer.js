import { percent, size, whole } from '../format.js'
import { shown } from '../picture.js'
import { footerOf } from '../view/footer.js'
import { named } from './parts.js'

/**
 * @typedef {import('./panel.js').Line} Line
 * @typedef {import('../state.js').State} State
 */

/**
 * The file to which the figures go, when there is one.
 * @type {import('./panel.js').Panel}
 */
export const csv = {
  name: 'csv',
  visible: state => Boolean(shown(state).snapshot?.csv) && state.view === 'main',
  rows: () => ({ least: 1, most: 1 }),
  turn: 4,

  draw(state) {
    const { csv } = /** @type {import('../state.js').Snapshot} */ (shown(state).snapshot)
    if (!csv) return []
    const { file, bytes, max_bytes: most, rotations, error } = csv
    if (error !== null)
      return [
        [
          [' csv  ', 'header'],
          [file, 'value'],
          [`  ${error}`, 'bad'],
        ],
      ]
    const full = most > 0 ? [[` of ${size(most)} (${percent(bytes / most)})`, 'label']] : []
    return [
      [
        [' csv  ', 'header'],
        [file, 'value'],
        [`  ${size(bytes)}`, 'value'],
        .../** @type {Line} */ (full),
        ['  ', ''],
        ...named('rotations', whole(rotations)),
      ],
    ]
  },
}

/**
 * @param {State} state
 * @returns {[key: string, text: string][]} the most important ones first
 */
function keysOf(state) {
  const { view, frozen, log, sort, owner } = state
  const quit = /** @type {[string, string]} */ (['q', owner ? 'quit …' : 'quit'])
  const pause = /** @type {[string, string]} */ (['p', frozen === null ? 'pause' : 'go on'])
  if (shown(state).snapshot === null && view === 'main') return [quit, ['h', 'help']]
  switch (view) {
    case 'help':
    case 'events':
      return [quit, ['esc', 'back'], ['↑↓', 'scroll']]
    case 'detail':
      return [quit, ['esc', 'back'], ['↑↓', 'other worker'], ['g', 'GC'], ['r', 'restart'], pause]
    case 'main':
      return [
        quit,
        ['h', 'help'],
        ['↑↓', 'select'],
        ['enter', 'detail'],
        ['s', `sort: ${sort.column}${sort.down ? '▼' : '▲'}`],
        ['c', 'chart'],
        pause,
        ['l', log.on ? 'log off' : 'log'],
        ['e', 'events'],
        ['g', 'GC'],
        ['r', 'restart'],
      ]
  }
}

export const footer = footerOf(keysOf)
