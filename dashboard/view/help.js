import { BACK, rule, scrolled } from '../panels/parts.js'
import { beside, width as widthOf } from '../terminal/line.js'

/** @typedef {import('../terminal/line.js').Line} Line */

/** What both views have. @type {readonly [key: string, text: string][]} */
const KEYS = [
  ['h ?', 'this help'],
  ['↑ ↓ k j', 'select a row; pgup, pgdn, home, end'],
  ['enter', 'its detail; esc goes back'],
  ['s S', 'sort by the next column, turn round'],
  ['c tab', 'the next chart'],
  ['e', 'all events'],
  ['p', 'pause, go on'],
  ['ctrl-l', 'paint the screen anew'],
]

/**
 * Keys and words, one beside the other where there is room.
 *
 * @template {{view: string, scroll: number}} State
 * @param {object} parts
 * @param {(state: State) => Line[]} [parts.first] above the keys
 * @param {(state: State) => readonly [key: string, text: string][]} parts.keys that only this view has
 * @param {(state: State) => Line[]} parts.words
 * @returns {import('./screen.js').Panel<State>}
 */
export const helpOf = ({ first = () => [], keys, words }) => ({
  name: 'help',
  visible: state => state.view === 'help',
  rows: () => ({ least: 3, most: Number.POSITIVE_INFINITY }),
  turn: 3,

  draw(state, width, rows) {
    const left = [
      ...first(state),
      ...[...KEYS, ...keys(state)].map(
        ([key, text]) =>
          /** @type {Line} */ ([
            [` ${key.padEnd(10)}`, 'key'],
            [text, 'value'],
          ]),
      ),
    ]
    const right = words(state)
    const half = Math.max(...left.map(widthOf)) + 2
    const lines =
      width >= half + 2 + Math.max(...right.map(widthOf))
        ? beside([left, right], [half, width - half - 2], 2)
        : [...left, [], ...right.map(line => /** @type {Line} */ ([[' ', ''], ...line]))]
    return [rule('help', width, BACK), ...scrolled(lines, rows - 1, state.scroll)]
  },
})
