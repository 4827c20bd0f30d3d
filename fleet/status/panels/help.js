import { rule, scrolled } from '../../../dashboard/panels/parts.js'
import { beside, width as widthOf } from '../../../dashboard/terminal/line.js'

/** @typedef {import('./panel.js').Line} Line */

/** @type {readonly [key: string, text: string][]} */
const KEYS = [
  ['h ?', 'this help'],
  ['↑ ↓ k j', 'select a drone'],
  ['pgup pgdn', 'ten further; home, end'],
  ['enter', 'its detail; esc goes back'],
  ['s S', 'sort by the next column, turn round'],
  ['c tab', 'the next chart'],
  ['t', 'histogram: all, or the last 5 s'],
  ['e', 'all events'],
  ['f', 'all faults'],
  ['p', 'pause, go on'],
  ['n', 'another number of connections'],
  ['+ -', 'some more, some fewer connections'],
  ['r', 'restart the selected drone'],
  ['ctrl-l', 'paint the screen anew'],
  ['q ctrl-c', 'leave; the load goes on'],
]

/** What docs/fleet.md says at length. @type {readonly [name: string, text: string][]} */
const WORDS = [
  ['lost', 'missing, though nothing had broken'],
  ['missed', 'came while a connection was away'],
  ['duplicates', 'had come before'],
  ['disordered', 'came after a later one'],
  ['damaged', 'the payload was not whole'],
  ['unrecovered', 'recoveries that failed'],
  ['refused', 'subscriptions'],
  ['unpublished', 'not confirmed by the target'],
  ['failed', 'attempts to connect'],
  ['ended', 'by the target or the network'],
  ['each', 'memory of one connection'],
  ['clock', 'behind the gateway, and its error'],
  ['publishing', 'until the target has confirmed'],
  ['own machine', 'both ends on one: no clocks to compare'],
  ['95 %', 'the mean of all is there, so sure'],
]

/**
 * Keys and words.
 * @type {import('./panel.js').Panel}
 */
export const help = {
  name: 'help',
  visible: state => state.view === 'help',
  rows: () => ({ least: 3, most: Number.POSITIVE_INFINITY }),
  turn: 3,

  draw(state, width, rows) {
    const left = KEYS.map(
      ([key, text]) =>
        /** @type {Line} */ ([
          [` ${key.padEnd(10)}`, 'key'],
          [text, 'value'],
        ]),
    )
    const right = WORDS.map(
      ([name, text]) =>
        /** @type {Line} */ ([
          [name.padEnd(12), 'accent'],
          [text, 'label'],
        ]),
    )
    const half = Math.max(...left.map(widthOf)) + 2
    const needed = half + 2 + Math.max(...right.map(widthOf))
    const lines =
      width >= needed
        ? beside([left, right], [half, width - half - 2], 2)
        : [...left, [], ...right.map(line => /** @type {Line} */ ([[' ', ''], ...line]))]
    return [
      rule('help', width, [
        ['esc', 'key'],
        [' back', 'label'],
      ]),
      ...scrolled(lines, rows - 1, state.scroll),
    ]
  },
}
